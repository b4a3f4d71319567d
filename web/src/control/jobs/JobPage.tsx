import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import { jobRoute } from "@/app/crawlRoutes";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { count, counted, duration, share } from "../charts/format";
import { LiveSign } from "../live/LiveSign";
import { Moment } from "../live/Moment";
import { useCrawlNews } from "../overview/useOverview";
import { LogView } from "../executions/LogView";
import { PausedNotice } from "../executions/Paused";
import { JobActions } from "./JobActions";
import { useJob, useJobExecutions, useJobStats, type Job } from "./useJobs";
import { isPaused, runStateOf, toneOf } from "./words";

/** One job: when it runs, what can be done with it, its runs and its log. */
export function JobPage() {
  const id = Number(jobRoute.useParams().id);
  const news = useCrawlNews();
  const navigate = useNavigate();
  const { data: job, error, refetch } = useJob(id, news);
  useEffect(() => { document.title = `${job?.source_name ?? "Job"} · Holdfast`; }, [job?.source_name]);
  if (error && !job) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!job) return <div className="min-h-96" aria-busy />;
  return (
    <div className="space-y-5">
      <header>
        <p className="text-sm"><Link to="/control/jobs">Jobs</Link></p>
        <div className="flex flex-wrap items-center justify-between gap-3">
          <h1 className="min-w-0 text-2xl break-words">{job.name ?? job.source_name} <span className="text-soft tabular-nums">job {job.id}</span></h1>
          <span className="flex items-center gap-3"><Tag tone={toneOf(job.status)}>{job.status}</Tag>{isPaused(job.latest_execution) && <Tag tone="warn">run paused</Tag>}{job.status === "running" && <LiveSign liveness={news} />}</span>
        </div>
        <p className="text-soft">Crawls <Link to="/control/sources/$id" params={{ id: String(job.source_id) }}>{job.source_name}</Link>, {job.schedule}. {job.next_run_at ? <>Next run <Moment at={job.next_run_at} relative />.</> : null}</p>
      </header>
      <JobActions job={job} onDone={(deed) => { if (deed === "delete") void navigate({ to: "/control/jobs" }); }} />
      {job.latest_execution && <PausedNotice run={job.latest_execution} />}
      {job.status === "failed" && job.error_message && <Notice tone="bad" title="Its last run failed.">{job.error_message}</Notice>}
      {job.paused_by === "source" && <Notice tone="warn" title="It waits because its source is disabled.">Enable the <Link to="/control/sources/$id" params={{ id: String(job.source_id) }}>source</Link> and it goes on.</Notice>}
      <Figures id={id} job={job} />
      <Runs id={id} />
      {job.latest_execution && <Card title={`Log of run #${job.latest_execution.id}`}><LogView key={job.latest_execution.id} jobId={id} execution={job.latest_execution.execution_number} isEnded={job.latest_execution.completed_at !== null} /></Card>}
      <Settings job={job} />
    </div>
  );
}

function Figures({ id, job }: { id: number; job: Job }) {
  const { data } = useJobStats(id);
  return (
    <dl className="grid grid-cols-2 gap-3 sm:grid-cols-4">
      <Figure label="Runs" value={data ? count(data.total_executions) : "\u2007"} note={data ? `${count(data.failed_runs)} failed` : "\u2007"} />
      <Figure label="Success" value={data ? (data.total_executions ? share(data.success_rate) : "–") : "\u2007"} note="of runs that ended by themselves" />
      <Figure label="A run takes" value={data ? (data.average_duration_ms ? duration(data.average_duration_ms / 1000) : "–") : "\u2007"} note="on average" />
      <Figure label="Retries" value={`${job.current_retry_count} of ${job.max_retries}`} note="of the present failure" />
    </dl>
  );
}

function Runs({ id }: { id: number }) {
  const { data, error, refetch } = useJobExecutions(id);
  return (
    <Card title="Runs" className="min-h-40">
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <DataTable caption="Runs of this job, newest first" rows={data?.executions ?? []} keyOf={(run) => run.id} empty={error && !data ? null : <p className="text-soft">{data ? "It has not run yet." : "Looking for runs…"}</p>} columns={[
        { head: "Run", cell: (run) => <Link to="/control/executions/$id" params={{ id: String(run.id) }} className="inline-block min-h-6">#{run.id}</Link> },
        { head: "State", cell: (run) => <Tag tone={toneOf(runStateOf(run))}>{runStateOf(run)}</Tag> },
        { head: "Began", cell: (run) => <Moment at={run.started_at} /> },
        { head: "Took", isNumber: true, cell: (run) => (run.duration_ms === null ? "–" : duration(run.duration_ms / 1000)) },
        { head: "Pages", isNumber: true, cell: (run) => count(run.items_crawled) },
        { head: "Failed", isNumber: true, cell: (run) => count(run.items_failed) },
        { head: "How it ended", cell: (run) => <span className="text-sm break-words">{run.error_message ?? run.sentence ?? ""}</span> },
      ]} />
      {data && data.total > data.executions.length && <p className="mt-2 text-sm text-soft">{counted(data.total - data.executions.length, "older run")} not shown.</p>}
    </Card>
  );
}

function Settings({ job }: { job: Job }) {
  return (
    <Card title="What it has otherwise than its source">
      {Object.keys(job.config).length === 0 ? <p className="text-soft">Nothing: it crawls as its source says.</p>
        : <pre className="max-h-64 overflow-auto rounded-part bg-sunk p-3 text-sm" tabIndex={0}>{JSON.stringify(job.config, null, 2)}</pre>}
    </Card>
  );
}
