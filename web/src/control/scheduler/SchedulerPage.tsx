import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { counted, duration } from "@/control/charts/format";
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
      <PageHead title="Schedules" actions={<Button kind={day.data?.rebalance_advised ? "main" : "plain"} disabled={preview.isPending} onClick={() => preview.mutate(undefined)}>{preview.isPending ? "Planning…" : "Preview a rebalance"}</Button>}>
        When each source is crawled next. Change a schedule in its source; spread the coming day evenly here.
      </PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {day.error || metrics.error || preview.error ? <div className="mb-4"><Problem problem={day.error ?? metrics.error ?? preview.error} onAgain={() => { void day.refetch(); void metrics.refetch(); }} /></div> : null}
      {/* All at once: figures, warnings and runs that come one by one push each other down. */}
      {[day, metrics, runs].some(({ isPending }) => isPending) ? <p role="status" className="min-h-screen text-soft">Loading…</p> : <>
      {metrics.data?.warnings.map((warning) => <div key={warning} className="mb-4"><Notice tone="warn" title={warning} /></div>)}
      <dl className="mb-4 grid min-h-24 grid-cols-2 gap-3 sm:grid-cols-4">
        <Figure label="Score of the day" value={day.data ? day.data.distribution_score.toFixed(2) : "–"} note={day.data ? (day.data.rebalance_advised ? "a rebalance is advised" : "even enough") : undefined} />
        <Figure label="Jobs of the day" value={day.data?.total_jobs.toLocaleString("en") ?? "–"} note={day.data?.peak_count ? `most at ${hourClock(day.data.peak_hour)}: ${day.data.peak_count}` : undefined} />
        <Figure label="Runs that succeeded" value={metrics.data ? `${Math.round(metrics.data.executions.success_rate * 100)} %` : "–"} note={metrics.data ? `of 24 hours; ${duration(metrics.data.executions.average_duration_ms / 1000)} on average` : undefined} />
        <Figure label="Scheduler last seen" value={metrics.data ? <Moment at={metrics.data.last_check_at} relative none="never" /> : "–"} note={metrics.data ? `${counted(metrics.data.stale_locks_cleared, "stale lock")} cleared so far` : undefined} />
      </dl>
      <div className="space-y-4">
        <Card title="Next runs"><NextRuns /></Card>
        <Card title="The coming day" className="min-h-64 min-w-0">{day.data && <DayChart hours={dayHours(day.data.slot_distribution, plan?.moved ?? [], day.dataUpdatedAt)} hasPreview={Boolean(plan?.moved.length)} />}</Card>
        {plan && <RebalancePlan plan={plan} before={day.data?.distribution_score} onApply={() => setAsking(true)} onClose={() => preview.reset()} />}
      </div>
      </>}
      {isAsking && plan && (
        <Confirm title={`Move ${counted(plan.moved.length, "job")}?`} action="Apply the rebalance" isDanger={false} onClose={() => setAsking(false)} onConfirm={async () => {
          const done = await apply.mutateAsync(undefined);
          preview.reset();
          setDeed({ title: `${counted(done.moved.length, "job")} moved; the score is ${done.new_distribution_score.toFixed(2)} now`, text: "Each keeps its interval from its new time on." });
        }}>
          <p>Their next runs get other times of the day; intervals stay as they are, and schedules with a time of day are not moved. The old times are not kept.</p>
        </Confirm>
      )}
    </>
  );
}

function NextRuns() {
  const { data, error, refetch } = useNextRuns();
  if (error) return <Problem problem={error} onAgain={() => void refetch()} />;
  return (
    <DataTable caption="Next runs" rows={data?.jobs ?? []} keyOf={(job) => job.id} empty={data ? <Notice title="No runs are scheduled" actions={<Link to="/control/sources" className={buttonClass("main")}>Go to sources</Link>}>The next run of each source appears here. Open a source and choose how often it is crawled.</Notice> : <p className="min-h-24 text-soft">Loading…</p>} columns={[
      { head: "Source", cell: (job) => <Link to="/control/sources/$id" params={{ id: String(job.source_id) }} hash="schedule" className="font-semibold break-words">{job.source_name}</Link> },
      { head: "Schedule", cell: (job) => (job.schedule === "once" ? "once more, after a failure" : job.schedule) },
      { head: "Next run", cell: (job) => <Moment at={job.next_run_at} /> },
      { head: "In", cell: (job) => <Moment at={job.next_run_at} relative /> },
      { head: "Job", cell: (job) => <Link to="/control/jobs/$id" params={{ id: String(job.id) }} className="break-words">{job.name ?? `job ${job.id}`}</Link> },
    ]} />
  );
}
