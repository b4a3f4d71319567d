import { Link, useNavigate } from "@tanstack/react-router";
import { Download, Plus } from "lucide-react";
import { useEffect } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { managedSourcesRoute } from "@/app/crawlRoutes";
import { buttonClass } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { Moment } from "../live/Moment";
import { Pager } from "../live/Pager";
import { SearchField } from "../live/SearchField";
import { readAskedSources, type AskedSources } from "./asked";
import { scheduleText } from "./schedule";
import { PAGE_SIZE, useManagedSources, type Source } from "./useSources";
import { warningText } from "./warnings";
import { t } from "@/language/control/sources";

/** What is kept, and how. */
export function ManagedSourcesPage() {
  const asked = readAskedSources({ ...managedSourcesRoute.useSearch() });
  const navigate = useNavigate();
  const { data, error, refetch, isFetching } = useManagedSources(asked);
  useEffect(() => { document.title = `${t("sources")} · Holdfast`; }, []);
  const go = (change: Partial<AskedSources>) => void navigate({ to: "/control/sources", search: readAskedSources({ ...asked, page: undefined, ...change }) });
  return (
    <>
      <header className="mb-4 flex flex-wrap items-center justify-between gap-3">
        <h1 className="text-2xl">{t("sources")}</h1>
        <div className="flex flex-wrap gap-2">
          <a href="/api/v1/sources/export?format=yaml" download className={buttonClass()}><Download aria-hidden className="size-4" />{t("allYaml")}</a>
          <Operate><Link to="/control/sources/new" className={buttonClass("main")}><Plus aria-hidden className="size-4" />{t("newSource")}</Link></Operate>
        </div>
      </header>
      <form role="search" className="mb-5 grid items-end gap-3 sm:grid-cols-[1fr_12rem]" onSubmit={(event) => event.preventDefault()}>
        <SearchField label={t("search")} placeholder={t("searchHint")} asked={asked.q ?? ""} onAsk={(q) => go({ q })} />
        <SelectField label={t("state")} value={asked.enabled ?? ""} onChange={(event) => go({ enabled: (event.target.value || undefined) as AskedSources["enabled"] })}>
          <option value="">{t("all")}</option>
          <option value="yes">{t("enabled")}</option>
          <option value="no">{t("disabled")}</option>
        </SelectField>
      </form>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <p role="status" className="mb-2 min-h-6 text-sm text-soft">{data ? t("count", { count: data.total }) : ""}</p>
      <div aria-busy={isFetching} className="min-h-64">
        {data && <DataTable caption={t("sources")} rows={data.sources} keyOf={(source) => source.id} columns={columns()} empty={
          asked.q || asked.enabled ? <Notice title={t("noMatch")}>{t("noMatchHow")}</Notice>
            : <Notice title={t("none")} actions={<Operate><Link to="/control/start" className={buttonClass("main")}>{t("addFirst")}</Link><Link to="/control/sources/new" className={buttonClass()}>{t("newSource")}</Link></Operate>}>{t("noneHow")}</Notice>
        } />}
      </div>
      {data && <Pager page={asked.page ?? 1} size={PAGE_SIZE} total={data.total} label={t("pages")} onPage={(page) => go({ page })} />}
    </>
  );
}

const columns = () => [
  { head: t("source"), cell: (source: Source) => <><Link to="/control/sources/$id" params={{ id: String(source.id) }} className="inline-block min-h-6 font-semibold wrap-anywhere">{source.name}</Link><span className="block text-sm break-all text-soft">{source.code} · {source.base_url ?? t("noAddress")}</span></> },
  { head: t("state"), cell: (source: Source) => <Tag tone={source.enabled ? "good" : "warn"}>{source.enabled ? t("enabled") : t("disabled")}</Tag> },
  { head: t("schedule"), cell: (source: Source) => scheduleText(source.schedule) },
  { head: t("visible"), cell: (source: Source) => (source.visibility === "members" ? t("members") : t("everybody")) },
  { head: t("scope"), cell: (source: Source) => `${t.of("scopes", source.config.scope ?? "host")}${source.config.seeds && source.config.seeds.length > 1 ? `, ${t("seedCount", { count: source.config.seeds.length })}` : ""}` },
  { head: t("check"), cell: (source: Source) => (source.warnings.length > 0 ? <span className="text-sm text-warn">{source.warnings.map((one) => warningText(one) ?? one).join(" ")}</span> : <span className="text-soft">–</span>) },
  { head: t("changed"), cell: (source: Source) => <Moment at={source.updated_at} relative /> },
];
