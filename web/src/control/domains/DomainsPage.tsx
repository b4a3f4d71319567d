import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { count } from "@/control/charts/format";
import { domainsRoute } from "@/app/careRoutes";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { ShowMore } from "@/control/page/ShowMore";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { readAskedDomains, STATES, type AskedDomains } from "./asked";
import { CircuitTag, DomainTag, domainWord } from "./states";
import { useDomains } from "./useDomains";
import { t } from "@/language/control/domains";

const SORTS = ["domain", "created_at", "page_count", "crawl_delay"] as const;

/** The domains that crawls have met: how each stands, and why it waits. */
export function DomainsPage() {
  const asked = readAskedDomains({ ...domainsRoute.useSearch() });
  const navigate = useNavigate();
  const list = useDomains(asked);
  const [name, setName] = useState("");
  const go = (change: Partial<AskedDomains>) => void navigate({ to: "/control/domains", search: readAskedDomains({ ...asked, ...change }), replace: true });
  return (
    <>
      <PageHead title={t("domains")}>{t("intro")}</PageHead>
      <div className="mb-4 grid items-end gap-3 sm:grid-cols-[1fr_12rem_14rem]">
        <form className="flex items-end gap-2" onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) void navigate({ to: "/control/domains/$domain", params: { domain: name.trim() } });
        }}>
          <div className="grow"><TextField label={t("goTo")} value={name} maxLength={255} placeholder="www.example.org" onChange={(event) => setName(event.target.value)} /></div>
          <Button type="submit">{t("open")}</Button>
        </form>
        <SelectField label={t("state")} value={asked.state ?? ""} onChange={(event) => go({ state: (event.target.value || undefined) as AskedDomains["state"] })}>
          <option value="">{t("any")}</option>
          {STATES.map((state) => <option key={state} value={state}>{domainWord(state)}</option>)}
        </SelectField>
        <SelectField label={t("sortedBy")} value={asked.sortBy ?? "domain"} onChange={(event) => go({ sortBy: event.target.value as AskedDomains["sortBy"], ...(["page_count", "crawl_delay"].includes(event.target.value) ? { state: undefined } : {}) })}>
          {SORTS.map((value) => <option key={value} value={value}>{t(`sort.${value}`)}</option>)}
        </SelectField>
      </div>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      {!list.rows && !list.error && <p role="status" className="min-h-96 text-soft">{t("loading")}</p>}
      {list.rows && (
        <div className="min-h-96">
          <DataTable
            caption={t("domains")}
            rows={list.rows}
            keyOf={(row) => row.domain}
            empty={<Notice title={Object.keys(asked).length ? t("noMatch") : t("none")}>{Object.keys(asked).length ? t("noMatchHow") : t("noneHow")}</Notice>}
            columns={[
              { head: t("domain"), cell: (row) => <Link to="/control/domains/$domain" params={{ domain: row.domain }} className="break-all">{row.domain}</Link> },
              { head: t("state"), cell: (row) => <DomainTag state={row.state} /> },
              { head: t("circuit"), cell: (row) => <CircuitTag circuit={row.circuit} /> },
              { head: t("delay"), isNumber: true, cell: (row) => `${row.crawlDelay === null ? t("ofSource") : `${row.crawlDelay} s`}${row.slowDown > 1 ? ` × ${row.slowDown}` : ""}` },
              { head: t("pages"), isNumber: true, cell: (row) => `${count(row.pageCount)}${row.pageCount >= 10_000 ? "+" : ""}` },
              { head: t("nextRequest"), cell: (row) => (row.state === "ready" ? t("atOnce") : <Moment at={row.nextAllowedAt} none={t("atOnce")} />) },
            ]}
          />
          <ShowMore list={list} count={list.rows.length} noun="domain" />
        </div>
      )}
    </>
  );
}
