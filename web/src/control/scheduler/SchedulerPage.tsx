import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { count, duration, share } from "@/control/charts/format";
import { Moment } from "@/control/live/Moment";
import { Confirm } from "@/control/page/Confirm";
import { Done, type Deed } from "@/control/page/Done";
import { PageHead } from "@/control/page/PageHead";
import { Button, buttonClass } from "@/design/Button";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { DayChart } from "./DayChart";
import { RebalancePlan } from "./RebalancePlan";
import { dayHours, hourClock } from "./day";
import { useDistribution, useNextRuns, usePreviewRebalance, useRebalance, useSchedulerMetrics } from "./useScheduler";
import { scheduleText } from "@/control/sources/schedule";
import { t } from "@/language/control/scheduler";

/** When runs begin: the day in slots, how even it is, and a better plan before it is applied. */
export function SchedulerPage() {
  const day = useDistribution();
  const metrics = useSchedulerMetrics();
  const runs = useNextRuns();
  const preview = usePreviewRebalance();
  const apply = useRebalance();
  const [isAsking, setAsking] = useState(false);
  const [deed, setDeed] = useState<Deed | null>(null);
  const plan = preview.data;
  return (
    <>
      <PageHead title={t("schedules")} actions={<Operate><Button kind={day.data?.rebalance_advised ? "main" : "plain"} disabled={preview.isPending} onClick={() => preview.mutate(undefined)}>{preview.isPending ? t("planning") : t("preview")}</Button></Operate>}>
        {t("intro")}
      </PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {day.error || metrics.error || preview.error ? <div className="mb-4"><Problem problem={day.error ?? metrics.error ?? preview.error} onAgain={() => { void day.refetch(); void metrics.refetch(); }} /></div> : null}
      {/* All at once: figures, warnings and runs that come one by one push each other down. */}
      {[day, metrics, runs].some(({ isPending }) => isPending) ? <p role="status" className="min-h-screen text-soft">{t("loading")}</p> : <>
      {metrics.data?.warning_codes.map((code) => <div key={code} className="mb-4"><Notice tone="warn" title={t(`warning.${code}`, { share: share(metrics.data.executions.success_rate) })} /></div>)}
      <dl className="mb-4 grid min-h-24 grid-cols-2 gap-3 sm:grid-cols-4">
        <Figure label={t("score")} value={day.data ? day.data.distribution_score.toFixed(2) : "–"} note={day.data ? (day.data.rebalance_advised ? t("advised") : t("even")) : undefined} />
        <Figure label={t("jobsOfDay")} value={day.data ? count(day.data.total_jobs) : "–"} note={day.data?.peak_count ? t("mostAt", { time: hourClock(day.data.peak_hour), number: day.data.peak_count }) : undefined} />
        <Figure label={t("succeeded")} value={metrics.data ? `${Math.round(metrics.data.executions.success_rate * 100)} %` : "–"} note={metrics.data ? t("ofDay", { time: duration(metrics.data.executions.average_duration_ms / 1000) }) : undefined} />
        <Figure label={t("seen")} value={metrics.data ? <Moment at={metrics.data.last_check_at} relative none={t("never")} /> : "–"} note={metrics.data ? t("stale", { count: metrics.data.stale_locks_cleared }) : undefined} />
      </dl>
      <div className="space-y-4">
        <Card title={t("nextRuns")}><NextRuns /></Card>
        <Card title={t("day")} className="min-h-64 min-w-0">{day.data && <DayChart hours={dayHours(day.data.slot_distribution, plan?.moved ?? [], day.dataUpdatedAt)} hasPreview={Boolean(plan?.moved.length)} />}</Card>
        {plan && <RebalancePlan plan={plan} before={day.data?.distribution_score} onApply={() => setAsking(true)} onClose={() => preview.reset()} />}
      </div>
      </>}
      {isAsking && plan && (
        <Confirm title={t("moveTitle", { count: plan.moved.length })} action={t("apply")} isDanger={false} onClose={() => setAsking(false)} onConfirm={async () => {
          const done = await apply.mutateAsync(undefined);
          preview.reset();
          setDeed({ title: t("moved", { count: done.moved.length, score: done.new_distribution_score.toFixed(2) }), text: t("movedHow") });
        }}>
          <p>{t("moveHow")}</p>
        </Confirm>
      )}
    </>
  );
}

function NextRuns() {
  const { data, error, refetch } = useNextRuns();
  if (error) return <Problem problem={error} onAgain={() => void refetch()} />;
  return (
    <DataTable caption={t("nextRuns")} rows={data?.jobs ?? []} keyOf={(job) => job.id} empty={data ? <Notice title={t("none")} actions={<Link to="/control/sources" className={buttonClass("main")}>{t("toSources")}</Link>}>{t("noneHow")}</Notice> : <p className="min-h-24 text-soft">{t("loading")}</p>} columns={[
      { head: t("source"), cell: (job) => <Link to="/control/sources/$id" params={{ id: String(job.source_id) }} hash="schedule" className="font-semibold break-words">{job.source_name}</Link> },
      { head: t("schedule"), cell: (job) => (job.schedule === "once" ? t("onceMore") : scheduleText(job.schedule)) },
      { head: t("nextRun"), cell: (job) => <Moment at={job.next_run_at} /> },
      { head: t("in"), cell: (job) => <Moment at={job.next_run_at} relative /> },
      { head: t("job"), cell: (job) => <Link to="/control/jobs/$id" params={{ id: String(job.id) }} className="break-words">{job.name ?? t("jobName", { id: String(job.id) })}</Link> },
    ]} />
  );
}
