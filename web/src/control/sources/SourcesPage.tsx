import { Link, useNavigate } from "@tanstack/react-router";
import { Download, Plus } from "lucide-react";
import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import { managedSourcesRoute } from "@/app/crawlRoutes";
import { buttonClass } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { counted } from "../charts/format";
import { Moment } from "../live/Moment";
import { Pager } from "../live/Pager";
import { SearchField } from "../live/SearchField";
import { readAskedSources, type AskedSources } from "./asked";
import { PAGE_SIZE, useManagedSources, type Source } from "./useSources";

/** What is kept, and how. */
export function ManagedSourcesPage() {
  const asked = readAskedSources({ ...managedSourcesRoute.useSearch() });
  const navigate = useNavigate();
  const { data, error, refetch, isFetching } = useManagedSources(asked);
  useEffect(() => { document.title = "Sources · Holdfast"; }, []);
  const go = (change: Partial<AskedSources>) => void navigate({ to: "/control/sources", search: readAskedSources({ ...asked, page: undefined, ...change }) });
  return (
    <>
      <header className="mb-4 flex flex-wrap items-center justify-between gap-3">
        <h1 className="text-2xl">Sources</h1>
        <div className="flex flex-wrap gap-2">
          <a href="/api/v1/sources/export?format=yaml" download className={buttonClass()}><Download aria-hidden className="size-4" />All as YAML</a>
          <Link to="/control/sources/new" className={buttonClass("main")}><Plus aria-hidden className="size-4" />New source</Link>
        </div>
      </header>
      <form role="search" className="mb-5 grid items-end gap-3 sm:grid-cols-[1fr_12rem]" onSubmit={(event) => event.preventDefault()}>
        <SearchField label="Search" placeholder="code, name or address" asked={asked.q ?? ""} onAsk={(q) => go({ q })} />
        <SelectField label="State" value={asked.enabled ?? ""} onChange={(event) => go({ enabled: (event.target.value || undefined) as AskedSources["enabled"] })}>
          <option value="">all</option>
          <option value="yes">enabled</option>
          <option value="no">disabled</option>
        </SelectField>
      </form>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <p role="status" className="mb-2 min-h-6 text-sm text-soft">{data ? counted(data.total, "source") : ""}</p>
      <div aria-busy={isFetching} className="min-h-64">
        {data && <DataTable caption="Sources" rows={data.sources} keyOf={(source) => source.id} columns={COLUMNS} empty={
          asked.q || asked.enabled ? <Notice title="No matches.">Remove a filter, or search for another name.</Notice>
            : <Notice title="No sources yet" actions={<><Link to="/control/start" className={buttonClass("main")}>Add your first website</Link><Link to="/control/sources/new" className={buttonClass()}>New source</Link></>}>The websites that this archive crawls appear here, each with its schedule. Create the first one.</Notice>
        } />}
      </div>
      {data && <Pager page={asked.page ?? 1} size={PAGE_SIZE} total={data.total} label="Pages of sources" onPage={(page) => go({ page })} />}
    </>
  );
}

const COLUMNS = [
  { head: "Source", cell: (source: Source) => <><Link to="/control/sources/$id" params={{ id: String(source.id) }} className="inline-block min-h-6 font-semibold wrap-anywhere">{source.name}</Link><span className="block text-sm break-all text-soft">{source.code} · {source.base_url ?? "no address"}</span></> },
  { head: "State", cell: (source: Source) => <Tag tone={source.enabled ? "good" : "warn"}>{source.enabled ? "enabled" : "disabled"}</Tag> },
  { head: "Schedule", cell: (source: Source) => (source.schedule === "once" ? "only when started" : source.schedule) },
  { head: "Visible to", cell: (source: Source) => (source.visibility === "members" ? "members" : "everybody") },
  { head: "Scope", cell: (source: Source) => `${source.config.scope ?? "host"}${source.config.seeds && source.config.seeds.length > 1 ? `, ${counted(source.config.seeds.length, "seed")}` : ""}` },
  { head: "Please check", cell: (source: Source) => (source.warnings.length > 0 ? <span className="text-sm text-warn">{source.warnings.join(" ")}</span> : <span className="text-soft">–</span>) },
  { head: "Changed", cell: (source: Source) => <Moment at={source.updated_at} relative /> },
];
