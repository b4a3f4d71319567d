import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { bytes, count, share } from "../charts/format";
import { Meter } from "../charts/Meter";
import { isAhead } from "../jobs/words";
import { leftOf, outcomeWord, wordsOf } from "./outcomes";
import { OverTime } from "./OverTime";
import { useFrontierStats, useReport, type Execution, type Report } from "./useExecution";
import { t } from "@/language/control/executions";

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
      {isAhead(run) ? <Notice title={t("ahead")}>{t("aheadHow")}</Notice> : isWithout ? <Notice title={t("without")}>{t("withoutHow")}</Notice> : (
        <Card title={t("progress")} className="min-h-28">
          <p className="mb-1 flex flex-wrap justify-between gap-2"><span>{stats ? t("ofKnown", { done, all }) : "\u2007"}</span><span className="tabular-nums">{all ? share(done / all) : ""}</span></p>
          <Meter label={t("doneMeter")} value={done} most={Math.max(1, all)} />
          {left > 0 && <p className="mt-1 text-sm text-soft">{t("leftAtEnd", { count: left })}</p>}
          {isRunning && <p className="mt-1 text-sm text-soft">{t("grows")}</p>}
        </Card>
      )}
      <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3 xl:grid-cols-6">
        <Figure label={t("pages")} value={count(run.items_crawled)} note={t("capturedNote")} />
        <Figure label={t("failed")} value={count(run.items_failed)} note={t("failedNote")} />
        <Figure label={t("queued")} value={stats ? count(stats.pending) : "–"} note={stats && isRunning ? t("activeHosts", { count: stats.inProgress }) : undefined} />
        <Figure label={t("leftOut")} value={stats ? count(Math.max(0, stats.ruledOut - left)) : "–"} note={absent ? t("byRulesSitemaps", { count: absent }) : t("byRules")} />
        <Figure label={t("hosts")} value={stats ? count(stats.totalDomains) : "–"} />
        <Figure label={t("network")} value={report ? bytes(report.bytes) : "–"} />
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
    <Card title={t("outcomes")} className="min-h-40">
      <DataTable caption={t("outcomesCaption")} rows={rows} keyOf={(one) => one.word} empty={<p className="text-soft">{t("noOutcome")}</p>} columns={[
        { head: t("outcome"), cell: (one) => <Tag tone={one.tone}>{outcomeWord(one.word)}</Tag> },
        { head: t("addresses"), isNumber: true, cell: (one) => count(one.count) },
        { head: t("share"), isNumber: true, cell: (one) => share(one.count / ended) },
      ]} />
    </Card>
  );
}
