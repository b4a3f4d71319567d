import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { bytes, count, counted, share } from "../charts/format";
import { Meter } from "../charts/Meter";
import { isAhead } from "../jobs/words";
import { leftOf, wordsOf } from "./outcomes";
import { OverTime } from "./OverTime";
import { useFrontierStats, useReport, type Execution, type Report } from "./useExecution";

/** How far a run is, how its addresses ended, and its figures over time. */
export function Now({ run, isRunning }: { run: Execution; isRunning: boolean }) {
  const { data: stats, error, refetch } = useFrontierStats(run.id, isRunning);
  const hasNone = error instanceof ApiProblem && error.status === 404;
  const { data: report } = useReport(run.id, isRunning);
  const left = report ? leftOf(report.reasons) : 0;
  const absent = report?.reasons.find((one) => one.reason === "no_sitemap")?.count ?? 0;
  const closed = stats ? stats.completed + stats.failed + stats.ruledOut : 0;
  const done = Math.max(0, closed - left);
  const all = stats ? closed + stats.pending : 0;
  const isWithout = hasNone || (stats !== undefined && all === 0 && !isRunning);
  return (
    <div className="space-y-5">
      {error && !stats && !hasNone ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {isAhead(run) ? <Notice title="It has not begun yet.">What it asks for is shown here as soon as a worker takes it up.</Notice> : isWithout ? <Notice title="This run has no queue of its own.">It was an import, another program crawled for it, or it ended before it began. Its figures stand below.</Notice> : (
        <Card title="Progress" className="min-h-28">
          <p className="mb-1 flex flex-wrap justify-between gap-2"><span>{stats ? `${count(done)} of ${count(all)} known addresses` : "\u2007"}</span><span className="tabular-nums">{all ? share(done / all) : ""}</span></p>
          <Meter label="Addresses that are done, of those known" value={done} most={Math.max(1, all)} />
          {left > 0 && <p className="mt-1 text-sm text-soft">{counted(left, "address", "addresses")} it had not got to when it ended.</p>}
          {isRunning && <p className="mt-1 text-sm text-soft">The whole grows while pages lead to others.</p>}
        </Card>
      )}
      <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3 xl:grid-cols-6">
        <Figure label="Pages" value={count(run.items_crawled)} note="captured" />
        <Figure label="Failed" value={count(run.items_failed)} note="pages and embedded files" />
        <Figure label="Queued" value={stats ? count(stats.pending) : "–"} note={stats && isRunning ? `${counted(stats.inProgress, "host")} asked now` : undefined} />
        <Figure label="Left out" value={stats ? count(Math.max(0, stats.ruledOut - left)) : "–"} note={absent ? `by rules and robots.txt; ${counted(absent, "sitemap")} not there` : "by rules and robots.txt"} />
        <Figure label="Hosts" value={stats ? count(stats.totalDomains) : "–"} />
        <Figure label="From the network" value={report ? bytes(report.bytes) : "–"} />
      </dl>
      {report && <Outcomes report={report} />}
      <OverTime run={run} />
    </div>
  );
}

function Outcomes({ report }: { report: Report }) {
  const rows = wordsOf(report.reasons);
  const ended = rows.reduce((sum, one) => sum + one.count, 0);
  return (
    <Card title="Outcomes" className="min-h-40">
      <DataTable caption="Addresses by outcome" rows={rows} keyOf={(one) => one.word} empty={<p className="text-soft">No address has an outcome yet.</p>} columns={[
        { head: "Outcome", cell: (one) => <Tag tone={one.tone}>{one.word}</Tag> },
        { head: "Addresses", isNumber: true, cell: (one) => count(one.count) },
        { head: "Share", isNumber: true, cell: (one) => share(one.count / ended) },
      ]} />
    </Card>
  );
}
