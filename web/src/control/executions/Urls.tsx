import { useNavigate } from "@tanstack/react-router";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { useMay } from "@/app/useSession";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Tag } from "@/design/Tag";
import { counted } from "../charts/format";
import { Moment } from "../live/Moment";
import { SearchField } from "../live/SearchField";
import { readAskedRun, type AskedRun } from "./asked";
import { outcomeOf } from "./outcomes";
import { URL_STATES, useUrls, type QueuedUrl, type UrlState } from "./useExecution";

const STATES: Record<UrlState, string> = { pending: "queued, next first", deferred: "to be tried again later", retried: "tried, and queued again", completed: "captured", failed: "failed for good", excluded: "left out by a rule" };
const PRIORITY: Record<number, string> = { 3: "high", 2: "middle", 1: "low" };
const KINDS: Record<string, string> = { page: "a page", requisite: "embedded in a page", sitemap: "a sitemap" };

/** The addresses of a run: those that come next, and why; those that ended, and how. */
export function Urls({ id, asked, isRunning }: { id: number; asked: AskedRun; isRunning: boolean }) {
  const navigate = useNavigate();
  const mayOperate = useMay("operate");
  const status = URL_STATES.find((one) => one === asked.status) ?? (isRunning ? "pending" : undefined);
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage, isFetching } = useUrls(id, { status, host: asked.host, q: asked.q }, isRunning);
  const go = (change: Partial<AskedRun>) => void navigate({ to: "/control/executions/$id", params: { id: String(id) }, search: readAskedRun({ ...asked, tab: "urls", ...change }), replace: true });
  const rows = data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <div className="space-y-3">
      <form role="search" className="grid items-end gap-3 sm:grid-cols-3" onSubmit={(event) => event.preventDefault()}>
        <SelectField label="State" value={status ?? ""} onChange={(event) => go({ status: event.target.value || undefined })}>
          {!isRunning && <option value="">all</option>}
          {URL_STATES.map((state) => <option key={state} value={state}>{STATES[state]}</option>)}
        </SelectField>
        <SearchField label="Host" asked={asked.host ?? ""} onAsk={(host) => go({ host })} problem={error instanceof ApiProblem && (error.status === 404 || error.status === 422) && asked.host ? "No such host in this run." : null} />
        <SearchField label="Part of the address" asked={asked.q ?? ""} onAsk={(q) => go({ q })} />
      </form>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <div className="min-h-48" aria-busy={isFetching}>
        <DataTable caption="Addresses of this run" rows={rows} keyOf={(row) => row.id} empty={<p className="text-soft">{!data ? "Looking for addresses…" : hasNextPage ? "None among the first addresses; the search goes on with More." : "No address is like that."}</p>} columns={[
          { head: "Address", cell: (row) => <span className="break-all">{row.url}</span> },
          { head: "Why", cell: (row) => <Why row={row} /> },
          { head: "When", cell: (row) => <>{row.completedAt ? "ended" : "found"} <Moment at={row.completedAt ?? row.createdAt} relative /></> },
        ]} />
      </div>
      <p className="flex flex-wrap items-center gap-3">
        <span className="text-sm text-soft">{counted(rows.length, "address", "addresses")} shown</span>
        {hasNextPage && <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>More</Button>}
        {mayOperate && <><a href={`/api/v1/failed-urls?execution=${id}`} download>Failed addresses (CSV)</a><a href="/api/v1/failed-urls" download>Failed addresses of all runs (CSV)</a></>}
      </p>
    </div>
  );
}

function Why({ row }: { row: QueuedUrl }) {
  if (row.outcome === null) {
    const again = row.attempt > 1 ? `try ${row.attempt}, after: ${row.reason ?? row.message ?? "a failure"}` : `${KINDS[row.kind] ?? row.kind}, ${row.depth === 0 ? "a seed" : counted(row.depth, "link") + " from a seed"}, ${PRIORITY[row.priority] ?? row.priority} priority`;
    return <>{again}{row.scheduledFor ? <>; not before <Moment at={row.scheduledFor} relative /></> : null}</>;
  }
  const [said, tone] = outcomeOf(row.outcome);
  return <><Tag tone={tone}>{said}</Tag> <span className="text-sm break-all text-soft">{[row.statusCode, row.reason, row.message].filter(Boolean).join(" · ")}</span></>;
}
