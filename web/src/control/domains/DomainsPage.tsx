import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { domainsRoute } from "@/app/careRoutes";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { ShowMore } from "@/control/page/ShowMore";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { readAskedDomains, STATES, type AskedDomains } from "./asked";
import { CircuitTag, DomainTag } from "./states";
import { useDomains } from "./useDomains";

const SORTS = { domain: "Name", created_at: "Met last", page_count: "Most pages", crawl_delay: "Slowed by an operator" } as const;

/** The domains that crawls have met: how each stands, and why it waits. */
export function DomainsPage() {
  const asked = readAskedDomains({ ...domainsRoute.useSearch() });
  const navigate = useNavigate();
  const list = useDomains(asked);
  const [name, setName] = useState("");
  const go = (change: Partial<AskedDomains>) => void navigate({ to: "/control/domains", search: readAskedDomains({ ...asked, ...change }), replace: true });
  return (
    <>
      <PageHead title="Domains">One request at a time goes to each of them, with a delay between. Here is how each stands, and why it waits.</PageHead>
      <div className="mb-4 grid items-end gap-3 sm:grid-cols-[1fr_12rem_14rem]">
        <form className="flex items-end gap-2" onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) void navigate({ to: "/control/domains/$domain", params: { domain: name.trim() } });
        }}>
          <div className="grow"><TextField label="Go to a domain" value={name} maxLength={255} placeholder="www.example.org" onChange={(event) => setName(event.target.value)} /></div>
          <Button type="submit">Open</Button>
        </form>
        <SelectField label="State" value={asked.state ?? ""} onChange={(event) => go({ state: (event.target.value || undefined) as AskedDomains["state"] })}>
          <option value="">Any</option>
          {STATES.map((state) => <option key={state} value={state}>{state}</option>)}
        </SelectField>
        <SelectField label="Sorted by" value={asked.sortBy ?? "domain"} onChange={(event) => go({ sortBy: event.target.value as AskedDomains["sortBy"], ...(["page_count", "crawl_delay"].includes(event.target.value) ? { state: undefined } : {}) })}>
          {Object.entries(SORTS).map(([value, label]) => <option key={value} value={value}>{label}</option>)}
        </SelectField>
      </div>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      {!list.rows && !list.error && <p role="status" className="min-h-96 text-soft">Asking for the domains…</p>}
      {list.rows && (
        <div className="min-h-96">
          <DataTable
            caption="Domains"
            rows={list.rows}
            keyOf={(row) => row.domain}
            empty={<Notice title={Object.keys(asked).length ? "No domain is like that" : "No crawl has met a domain yet"}>{Object.keys(asked).length ? "Choose another state or order." : "They appear with the first page that a crawl asks for."}</Notice>}
            columns={[
              { head: "Domain", cell: (row) => <Link to="/control/domains/$domain" params={{ domain: row.domain }} className="break-all">{row.domain}</Link> },
              { head: "State", cell: (row) => <DomainTag state={row.state} /> },
              { head: "Circuit", cell: (row) => <CircuitTag circuit={row.circuit} /> },
              { head: "Delay", isNumber: true, cell: (row) => `${row.crawlDelay === null ? "of the source" : `${row.crawlDelay} s`}${row.slowDown > 1 ? ` × ${row.slowDown}` : ""}` },
              { head: "Pages", isNumber: true, cell: (row) => `${row.pageCount.toLocaleString("en")}${row.pageCount >= 10_000 ? "+" : ""}` },
              { head: "Next request", cell: (row) => (row.state === "ready" ? "at once" : <Moment at={row.nextAllowedAt} none="at once" />) },
            ]}
          />
          <ShowMore list={list} count={list.rows.length} noun="domain" />
        </div>
      )}
    </>
  );
}
