import { Link, useNavigate } from "@tanstack/react-router";
import { X } from "lucide-react";
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
import { outcomeTone } from "./outcomes";
import { useUrls, type QueuedUrl, type UrlQuery } from "./useExecution";

/** What can be chosen, in words, and what the server is asked for. */
const ENDINGS: Record<string, [string, UrlQuery]> = {
  all: ["all", { last: true }],
  completed: ["captured", { status: "completed" }],
  failed: ["failed", { status: "failed" }],
  robots: ["forbidden by robots.txt", { outcome: "blocked_robots" }],
  excluded: ["left out by a rule or a limit", { outcome: "excluded" }],
  pending: ["queued, next first", { status: "pending" }],
  deferred: ["to be tried again later", { status: "deferred" }],
  retried: ["tried, and queued again", { status: "retried" }],
};
const KINDS: Record<string, [string, UrlQuery]> = { page: ["pages", { kind: "page" }], requisite: ["files that pages embed", { kind: "requisite" }], sitemap: ["sitemaps", { kind: "sitemap" }], all: ["all", {}] };
const PRIORITY: Record<number, string> = { 3: "high", 2: "middle", 1: "low" };
const KIND_WORDS: Record<string, string> = { page: "a page", requisite: "embedded in a page", sitemap: "a sitemap" };

/** The addresses of a run: how each ended, with its capture and its explanation; while it runs, what comes next. */
export function Urls({ id, asked, isRunning }: { id: number; asked: AskedRun; isRunning: boolean }) {
  const navigate = useNavigate();
  const mayOperate = useMay("operate");
  const status = asked.status && ENDINGS[asked.status] ? asked.status : isRunning && !asked.reason ? "pending" : "all";
  const kind = asked.kind && KINDS[asked.kind] ? asked.kind : isRunning || asked.reason ? "all" : "page";
  const wanted: UrlQuery = { ...ENDINGS[status]?.[1], ...KINDS[kind]?.[1], ...(asked.reason ? { reason: asked.reason, last: true } : {}), ...(asked.host ? { domain: asked.host } : {}), ...(asked.q ? { search: asked.q } : {}) };
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage, isFetching } = useUrls(id, wanted, isRunning);
  const go = (change: Partial<AskedRun>) => void navigate({ to: "/control/executions/$id", params: { id: String(id) }, search: readAskedRun({ ...asked, tab: "urls", ...change }), replace: true });
  const rows = data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <div className="space-y-3">
      <form role="search" className="grid items-end gap-3 sm:grid-cols-2 lg:grid-cols-4" onSubmit={(event) => event.preventDefault()}>
        <SelectField label="Outcome" value={status} onChange={(event) => go({ status: event.target.value, reason: undefined })}>
          {Object.entries(ENDINGS).map(([value, [said]]) => <option key={value} value={value}>{said}</option>)}
        </SelectField>
        <SelectField label="Kind" value={kind} onChange={(event) => go({ kind: event.target.value })}>
          {Object.entries(KINDS).map(([value, [said]]) => <option key={value} value={value}>{said}</option>)}
        </SelectField>
        <SearchField label="Host" asked={asked.host ?? ""} onAsk={(host) => go({ host })} problem={error instanceof ApiProblem && (error.status === 404 || error.status === 422) && asked.host ? "No such host in this run." : null} />
        <SearchField label="Part of the address" asked={asked.q ?? ""} onAsk={(q) => go({ q })} />
      </form>
      {asked.reason && <p><Button onClick={() => go({ reason: undefined })}><X aria-hidden className="size-4" /><span>Reason: <code>{asked.reason}</code></span><span className="sr-only">, remove this filter</span></Button></p>}
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <div className="min-h-48" aria-busy={isFetching && !data}>
        <DataTable caption="Addresses of this run" rows={rows} keyOf={(row) => row.id} empty={<p className="text-soft">{!data ? "Loading…" : hasNextPage ? "None among the first addresses; continue with More." : "No matches. Choose another outcome or kind, or shorten the search."}</p>} columns={[
          { head: "Address", cell: (row) => <span className="break-all">{row.url}</span> },
          { head: "Outcome", cell: (row) => <Outcome row={row} /> },
          { head: "See", cell: (row) => <Links row={row} /> },
          { head: "When", cell: (row) => <span className="whitespace-nowrap">{row.completedAt ? "" : "found "}<Moment at={row.completedAt ?? row.createdAt} relative /></span> },
        ]} />
      </div>
      <p className="flex flex-wrap items-center gap-3">
        <span role="status" className="text-sm text-soft">{counted(rows.length, "address", "addresses")} shown</span>
        {hasNextPage && <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>More</Button>}
        {mayOperate && <><a href={`/api/v1/failed-urls?execution=${id}`} download>Failed addresses (CSV)</a><a href="/api/v1/failed-urls" download>Failed addresses of all runs (CSV)</a></>}
      </p>
    </div>
  );
}

function Outcome({ row }: { row: QueuedUrl }) {
  if (row.outcome === null) {
    const again = row.attempt > 1 ? `try ${row.attempt}, after: ${row.reason ?? row.message ?? "a failure"}` : `${KIND_WORDS[row.kind] ?? row.kind}, ${row.depth === 0 ? "a seed" : counted(row.depth, "link") + " from a seed"}, ${PRIORITY[row.priority] ?? row.priority} priority`;
    return <>{again}{row.scheduledFor ? <>; not before <Moment at={row.scheduledFor} relative /></> : null}</>;
  }
  return (
    <>
      <Tag tone={outcomeTone(row.outcome)}>{row.word}</Tag>
      <span className="block text-sm break-all text-soft">
        {row.robotsLine ? <Link to="/control/domains/$domain" params={{ domain: row.domain }} search={{ url: row.url }} className="inline-block min-h-6">robots.txt line {row.robotsLine}: {row.message}</Link> : <Detail row={row} />}
      </span>
    </>
  );
}

/** What the word leaves out: the status of an answer, our reason where it says more, and the message. */
function Detail({ row }: { row: QueuedUrl }) {
  const isSaid = row.reason === null || row.reason === "ok" || row.reason.startsWith("http_");
  return <>{[row.statusCode && row.outcome !== "success" ? `HTTP ${row.statusCode}` : null, isSaid ? null : row.reason, row.message].filter(Boolean).join(" · ")}</>;
}

function Links({ row }: { row: QueuedUrl }) {
  const { capture } = row;
  return (
    <span className="flex flex-wrap justify-end gap-x-4 sm:justify-start">
      {capture && <Link to="/view/$timestamp" params={{ timestamp: capture.timestamp }} search={{ url: capture.url }} className="inline-block min-h-6">Capture<span className="sr-only"> of {row.url}</span></Link>}
      <Link to="/control/explain" search={{ url: row.url }} className="inline-block min-h-6">Explain<span className="sr-only"> {row.url}</span></Link>
    </span>
  );
}
