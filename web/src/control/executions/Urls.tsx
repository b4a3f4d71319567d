import { Link, useNavigate } from "@tanstack/react-router";
import { X } from "lucide-react";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { useMay } from "@/app/useSession";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Tag } from "@/design/Tag";
import { Moment } from "../live/Moment";
import { SearchField } from "../live/SearchField";
import { readAskedRun, type AskedRun } from "./asked";
import { outcomeTone, outcomeWord, reasonText } from "./outcomes";
import { useUrls, type QueuedUrl, type UrlQuery } from "./useExecution";
import { t } from "@/language/control/runUrls";
import { withParts } from "@/language/room";

/** What can be chosen, in words, and what the server is asked for. */
const ENDINGS: Record<string, UrlQuery> = {
  all: { last: true },
  completed: { status: "completed" },
  failed: { status: "failed" },
  robots: { outcome: "blocked_robots" },
  excluded: { outcome: "excluded" },
  pending: { status: "pending" },
  deferred: { status: "deferred" },
  retried: { status: "retried" },
};
const KINDS: Record<string, UrlQuery> = { page: { kind: "page" }, requisite: { kind: "requisite" }, sitemap: { kind: "sitemap" }, all: {} };

/** The addresses of a run: how each ended, with its capture and its explanation; while it runs, what comes next. */
export function Urls({ id, asked, isRunning }: { id: number; asked: AskedRun; isRunning: boolean }) {
  const navigate = useNavigate();
  const mayOperate = useMay("operate");
  const status = asked.status && ENDINGS[asked.status] ? asked.status : isRunning && !asked.reason ? "pending" : "all";
  const kind = asked.kind && KINDS[asked.kind] ? asked.kind : isRunning || asked.reason ? "all" : "page";
  const wanted: UrlQuery = { ...ENDINGS[status], ...KINDS[kind], ...(asked.reason ? { reason: asked.reason, last: true } : {}), ...(asked.host ? { domain: asked.host } : {}), ...(asked.q ? { search: asked.q } : {}) };
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage, isFetching } = useUrls(id, wanted, isRunning);
  const go = (change: Partial<AskedRun>) => void navigate({ to: "/control/executions/$id", params: { id: String(id) }, search: readAskedRun({ ...asked, tab: "urls", ...change }), replace: true });
  const rows = data?.pages.flatMap((page) => page.items) ?? [];
  const isFiltered = Boolean(asked.status ?? asked.kind ?? asked.reason ?? asked.host ?? asked.q);
  return (
    <div className="space-y-3">
      <form role="search" className="grid items-end gap-3 sm:grid-cols-2 lg:grid-cols-4" onSubmit={(event) => event.preventDefault()}>
        <SelectField label={t("outcome")} value={status} onChange={(event) => go({ status: event.target.value, reason: undefined })}>
          {Object.keys(ENDINGS).map((value) => <option key={value} value={value}>{t.of("of", value)}</option>)}
        </SelectField>
        <SelectField label={t("kind")} value={kind} onChange={(event) => go({ kind: event.target.value })}>
          {Object.keys(KINDS).map((value) => <option key={value} value={value}>{t.of("kinds", value)}</option>)}
        </SelectField>
        <SearchField label={t("host")} asked={asked.host ?? ""} onAsk={(host) => go({ host })} problem={error instanceof ApiProblem && (error.status === 404 || error.status === 422) && asked.host ? t("noHost") : null} />
        <SearchField label={t("part")} asked={asked.q ?? ""} onAsk={(q) => go({ q })} />
      </form>
      {asked.reason && <p><Button onClick={() => go({ reason: undefined })}><X aria-hidden className="size-4" /><span>{t("reasonIs", { reason: reasonText(asked.reason) })}</span><span className="sr-only">{t("removeFilter")}</span></Button></p>}
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <div className="min-h-48" aria-busy={isFetching && !data}>
        <DataTable caption={t("urlsCaption")} rows={rows} keyOf={(row) => row.id} empty={<p className="text-soft">{t(!data ? "loading" : hasNextPage ? "noneYet" : isFiltered || isRunning ? "noMatch" : "noRequests")}</p>} columns={[
          { head: t("address"), cell: (row) => <span className="break-all">{row.url}</span> },
          { head: t("outcome"), cell: (row) => <Outcome row={row} /> },
          { head: t("see"), cell: (row) => <Links row={row} /> },
          { head: t("when"), cell: (row) => <span className="whitespace-nowrap">{row.completedAt ? "" : `${t("found")} `}<Moment at={row.completedAt ?? row.createdAt} relative /></span> },
        ]} />
      </div>
      <p className="flex flex-wrap items-center gap-3">
        <span role="status" className="text-sm text-soft">{t("shown", { count: rows.length })}</span>
        {hasNextPage && <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t("more")}</Button>}
        {mayOperate && <><a href={`/api/v1/failed-urls?execution=${id}`} download>{t("failedCsv")}</a><a href="/api/v1/failed-urls" download>{t("failedAllCsv")}</a></>}
      </p>
    </div>
  );
}

function Outcome({ row }: { row: QueuedUrl }) {
  if (row.outcome === null) {
    const again = row.attempt > 1 ? t("tryAfter", { attempt: row.attempt, reason: row.reason ? reasonText(row.reason) : row.message ?? t("aFailure") }) : t("isQueued", { kind: t.of("kind", row.kind), depth: row.depth === 0 ? t("seed") : t("fromSeed", { count: row.depth }), priority: t.of("priority", String(row.priority)) });
    return <>{row.scheduledFor ? withParts(t("notBefore", { text: again }), { time: <Moment at={row.scheduledFor} relative /> }) : again}</>;
  }
  return (
    <>
      <Tag tone={outcomeTone(row.outcome)}>{outcomeWord(row.word)}</Tag>
      <span className="block text-sm break-all text-soft">
        {row.robotsLine ? <Link to="/control/domains/$domain" params={{ domain: row.domain }} search={{ url: row.url }} className="inline-block min-h-6">{t("robotsLine", { line: row.robotsLine, rule: row.message ?? "" })}</Link> : <Detail row={row} />}
      </span>
    </>
  );
}

/** What the word leaves out: the status of an answer, our reason where it says more, and the message. */
function Detail({ row }: { row: QueuedUrl }) {
  const isSaid = row.reason === null || row.reason === "ok" || row.reason.startsWith("http_");
  return <>{[row.statusCode && row.outcome !== "success" ? `HTTP ${row.statusCode}` : null, isSaid || row.reason === null ? null : reasonText(row.reason), row.message].filter(Boolean).join(" · ")}</>;
}

function Links({ row }: { row: QueuedUrl }) {
  const { capture } = row;
  return (
    <span className="flex flex-wrap justify-end gap-x-4 sm:justify-start">
      {capture && <Link to="/view/$timestamp" params={{ timestamp: capture.timestamp }} search={{ url: capture.url }} className="inline-block min-h-6">{t("capture")}<span className="sr-only"> {t("captureOf", { url: row.url })}</span></Link>}
      <Link to="/control/explain" search={{ url: row.url }} className="inline-block min-h-6">{t("explain")}<span className="sr-only"> {row.url}</span></Link>
    </span>
  );
}
