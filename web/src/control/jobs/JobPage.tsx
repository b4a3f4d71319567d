import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import { jobRoute } from "@/app/crawlRoutes";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { count, duration, share } from "../charts/format";
import { LiveSign } from "../live/LiveSign";
import { Moment } from "../live/Moment";
import { useCrawlNews } from "../overview/useOverview";
import { LogView } from "../executions/LogView";
import { endingText } from "../executions/outcomes";
import { PausedNotice } from "../executions/Paused";
import { scheduleText } from "../sources/schedule";
import { JobActions } from "./JobActions";
import { WaitNotice } from "./Waits";
import { useJob, useJobExecutions, useJobStats, type Job } from "./useJobs";
import { isPaused, runStateOf, stateWord, toneOf } from "./words";
import { t } from "@/language/control/jobs";
import { withParts } from "@/language/room";

/** One job: when it runs, what can be done with it, its runs and its log. */
export function JobPage() {
  const id = Number(jobRoute.useParams().id);
  const news = useCrawlNews();
  const navigate = useNavigate();
  const { data: job, error, refetch } = useJob(id, news);
  useEffect(() => { document.title = `${job?.source_name ?? t("job")} · Holdfast`; }, [job?.source_name]);
  if (error && !job) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!job) return <div className="min-h-96" aria-busy />;
  return (
    <div className="space-y-5">
      <header>
        <p className="text-sm"><Link to="/control/jobs">{t("jobs")}</Link></p>
        <div className="flex flex-wrap items-center justify-between gap-3">
          <h1 className="min-w-0 text-2xl break-words">{job.name ?? job.source_name} <span className="text-soft tabular-nums">{t("number", { id: job.id })}</span></h1>
          <span className="flex items-center gap-3"><Tag tone={toneOf(job.status)}>{stateWord(job.status)}</Tag>{isPaused(job.latest_execution) && <Tag tone="warn">{t("runPaused")}</Tag>}{job.status === "running" && <LiveSign liveness={news} />}</span>
        </div>
        <p className="text-soft">{withParts(t("crawls"), { source: <Link to="/control/sources/$id" params={{ id: String(job.source_id) }}>{job.source_name}</Link>, schedule: scheduleText(job.schedule) })} {job.next_run_at ? withParts(t("next"), { time: <Moment at={job.next_run_at} relative /> }) : null}</p>
      </header>
      <JobActions job={job} onDone={(deed) => { if (deed === "delete") void navigate({ to: "/control/jobs" }); }} />
      {job.latest_execution && <PausedNotice run={job.latest_execution} />}
      <WaitNotice run={job.latest_execution} job={job} />
      {job.status === "failed" && job.error_message && <Notice tone="bad" title={t("lastFailed")}>{job.error_message}</Notice>}
      {job.paused_by === "source" && <Notice tone="warn" title={t("waitsSource")}>{withParts(t("waitsSourceHow"), { source: <Link to="/control/sources/$id" params={{ id: String(job.source_id) }}>{t("sourceWord")}</Link> })}</Notice>}
      <Figures id={id} job={job} />
      <Runs id={id} />
      {job.latest_execution && <Card title={t("logOf", { number: String(job.latest_execution.id) })}><LogView key={job.latest_execution.id} jobId={id} execution={job.latest_execution.execution_number} isEnded={job.latest_execution.completed_at !== null} /></Card>}
      <Settings job={job} />
    </div>
  );
}

function Figures({ id, job }: { id: number; job: Job }) {
  const { data } = useJobStats(id);
  return (
    <dl className="grid grid-cols-2 gap-3 sm:grid-cols-4">
      <Figure label={t("runs")} value={data ? count(data.total_executions) : "\u2007"} note={data ? t("failedRuns", { count: data.failed_runs }) : "\u2007"} />
      <Figure label={t("success")} value={data ? (data.total_executions ? share(data.success_rate) : "–") : "\u2007"} note={t("successNote")} />
      <Figure label={t("takes")} value={data ? (data.average_duration_ms ? duration(data.average_duration_ms / 1000) : "–") : "\u2007"} note={t("onAverage")} />
      <Figure label={t("retries")} value={t("retriesIs", { done: job.current_retry_count, most: job.max_retries })} note={t("retriesNote")} />
    </dl>
  );
}

function Runs({ id }: { id: number }) {
  const { data, error, refetch } = useJobExecutions(id);
  return (
    <Card title={t("runs")} className="min-h-40">
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <DataTable caption={t("runsCaption")} rows={data?.executions ?? []} keyOf={(run) => run.id} empty={error && !data ? null : <p className="text-soft">{t(data ? "notRun" : "loading")}</p>} columns={[
        { head: t("run"), cell: (run) => <Link to="/control/executions/$id" params={{ id: String(run.id) }} className="inline-block min-h-6">#{run.id}</Link> },
        { head: t("state"), cell: (run) => <Tag tone={toneOf(runStateOf(run))}>{stateWord(runStateOf(run))}</Tag> },
        { head: t("began"), cell: (run) => <Moment at={run.started_at} /> },
        { head: t("took"), isNumber: true, cell: (run) => (run.duration_ms === null ? "–" : duration(run.duration_ms / 1000)) },
        { head: t("pagesHead"), isNumber: true, cell: (run) => count(run.items_crawled) },
        { head: t("failed"), isNumber: true, cell: (run) => count(run.items_failed) },
        { head: t("how"), cell: (run) => <HowItEnded run={run} /> },
      ]} />
      {data && data.total > data.executions.length && <p className="mt-2 text-sm text-soft">{t("older", { count: data.total - data.executions.length })}</p>}
    </Card>
  );
}

type ExecutionRow = NonNullable<ReturnType<typeof useJobExecutions>["data"]>["executions"][number];

/** Its error in the server's words, else its ending in the language of the page. */
function HowItEnded({ run }: { run: ExecutionRow }) {
  if (run.error_message) return <span lang="en" className="text-sm break-words">{run.error_message}</span>;
  if (run.ending === null || run.sentence === null) return <span className="text-sm break-words">{run.sentence}</span>;
  return <span className="text-sm break-words">{endingText({ ...run, sentence: run.sentence })}</span>;
}

function Settings({ job }: { job: Job }) {
  return (
    <Card title={t("settings")}>
      {Object.keys(job.config).length === 0 ? <p className="text-soft">{t("noSettings")}</p>
        : <pre className="max-h-64 overflow-auto rounded-part bg-sunk p-3 text-sm" tabIndex={0}>{JSON.stringify(job.config, null, 2)}</pre>}
    </Card>
  );
}
