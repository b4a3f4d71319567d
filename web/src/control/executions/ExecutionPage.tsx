import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import { executionRoute } from "@/app/crawlRoutes";
import { Notice } from "@/design/Notice";
import { Tabs } from "@/design/Tabs";
import { Tag } from "@/design/Tag";
import { counted, duration } from "../charts/format";
import { JobActions } from "../jobs/JobActions";
import { useJob, type Job } from "../jobs/useJobs";
import { isAhead, runDeedsOf, runStateOf, toneOf } from "../jobs/words";
import { LiveSign } from "../live/LiveSign";
import { Moment } from "../live/Moment";
import { useNow } from "../live/useNow";
import { useCrawlNews } from "../overview/useOverview";
import { sentence } from "../page/words";
import { readAskedRun, type RunTab } from "./asked";
import { Errors } from "./Errors";
import { Exclusions } from "./Exclusions";
import { Hosts } from "./Hosts";
import { LogView } from "./LogView";
import { Now } from "./Now";
import { PausedNotice } from "./Paused";
import { Result } from "./Result";
import { WhatItBrought } from "./WhatItBrought";
import { Urls } from "./Urls";
import { useExecution, type Execution } from "./useExecution";

/** One run: while it runs what it is at, afterwards its pages; its errors, hosts, log and rules, and what came of it. */
export function ExecutionPage() {
  const id = Number(executionRoute.useParams().id);
  const asked = readAskedRun({ ...executionRoute.useSearch() });
  const navigate = useNavigate();
  const news = useCrawlNews();
  const { data: run, error, refetch } = useExecution(id, news);
  const job = useJob(run?.job_id ?? -1, news);
  const name = job.data?.source_name ?? "";
  useEffect(() => { document.title = `${name || "Run"} #${id} · Holdfast`; }, [name, id]);
  if (error && !run) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!run || job.isPending) return <div className="min-h-96" aria-busy />;
  const isRunning = run.status === "running";
  const isOver = run.ending !== null;
  const next = job.data?.latest_execution;
  const go = (tab: string) => void navigate({ to: "/control/executions/$id", params: { id: String(id) }, search: readAskedRun({ tab }) });
  return (
    <div className="space-y-5">
      <header>
        <p className="text-sm"><Link to="/control/jobs">Jobs</Link> / <Link to="/control/jobs/$id" params={{ id: String(run.job_id) }}>{job.data?.name ?? job.data?.source_name ?? `job ${run.job_id}`}</Link></p>
        <div className="flex flex-wrap items-center justify-between gap-3">
          <h1 className="min-w-0 text-2xl break-words">{name} <span className={name ? "text-soft tabular-nums" : "tabular-nums"}>{name ? "run" : "Run"} #{id}</span></h1>
          <span className="flex items-center gap-3"><Tag tone={toneOf(runStateOf(run))}>{runStateOf(run)}</Tag>{isRunning && <LiveSign liveness={news} />}</span>
        </div>
        <p className="text-soft"><Span run={run} /></p>
      </header>
      {job.data ? <JobActions job={job.data.latest_execution?.id === id ? job.data : { ...job.data, status: "cancelled" }} only={runDeedsOf(run)} /> : isRunning && <JobActions job={loose(run)} only={runDeedsOf(run)} />}
      <PausedNotice run={run} />
      {run.error_message && <Notice tone="bad" title="It failed.">{run.error_message}</Notice>}
      {next && next.resumed_from === id && <Notice title={<>It goes on as <Link to="/control/executions/$id" params={{ id: String(next.id) }}>run #{next.id}</Link>.</>} />}
      <Ending run={run} />
      {isOver && <WhatItBrought run={run} job={job.data} />}
      <Tabs label="Parts of this run" value={asked.tab ?? (isOver ? "urls" : "now")} onChange={go} tabs={[
        { value: "now" satisfies RunTab, label: isOver ? "Summary" : "Now", content: <Now run={run} isRunning={isRunning} /> },
        { value: "urls" satisfies RunTab, label: "Pages", content: <Urls id={id} asked={asked} isRunning={isRunning} /> },
        { value: "errors" satisfies RunTab, label: "Errors", content: <Errors id={id} isRunning={isRunning} /> },
        { value: "hosts" satisfies RunTab, label: "Hosts", content: <Hosts id={id} isRunning={isRunning} /> },
        { value: "log" satisfies RunTab, label: "Log", content: <LogView key={id} jobId={run.job_id} execution={run.execution_number} isEnded={isOver} /> },
        { value: "rules" satisfies RunTab, label: "Exclusions", content: <Exclusions key={id} id={id} isRunning={isRunning} isAhead={isAhead(run)} /> },
        { value: "result" satisfies RunTab, label: "Coverage and changes", content: <Result run={run} source={job.data?.source_code} isRunning={isRunning} /> },
      ]} />
    </div>
  );
}

/** How it ended, and what that means; a queued run says which machine it waits for. */
function Ending({ run }: { run: Execution }) {
  if (!run.sentence) return null;
  const said = sentence(run.sentence);
  if (run.ending === null) return <Notice tone="warn" title="Waiting for its machine.">{said}</Notice>;
  const left = run.shortfalls["stopped"] ?? 0;
  if (run.ending === "stopped") return <Notice tone="warn" title="Stopped before it was complete.">{left ? `${counted(left, "address was", "addresses were")} not crawled. Resume to continue with them.` : "Nothing was left to crawl."}</Notice>;
  return <Notice tone={run.ending === "completed" ? "good" : run.ending === "failed" ? "bad" : "warn"} title={TITLES[run.ending] ?? run.ending}>{said}</Notice>;
}

const TITLES: Record<string, string> = { completed: "Complete.", incomplete: "Incomplete.", failed: "It failed.", cancelled: "Cancelled.", discarded: "Discarded." };

function Span({ run }: { run: Execution }) {
  const now = useNow();
  if (!run.started_at && run.completed_at) return <>Queued <Moment at={run.queued_at ?? run.created_at} both />, and ended before a worker had it.</>;
  if (!run.started_at) return <>Queued <Moment at={run.queued_at ?? run.created_at} relative />; it begins when a worker is free.</>;
  if (!run.completed_at) return <>Began <Moment at={run.started_at} both />, {duration(Math.max(0, (now - Date.parse(run.started_at)) / 1000))} ago{rested(run)}.</>;
  return <>From <Moment at={run.started_at} both /> to <Moment at={run.completed_at} both />{run.duration_ms === null ? "" : `, ${duration(run.duration_ms / 1000)}`}{rested(run)}.</>;
}

/** How long the pauses of a run lasted that are over. */
function rested(run: Execution): string {
  return run.paused_seconds >= 1 ? `, of which it was paused for ${duration(run.paused_seconds)}` : "";
}

/** A crawl of the command line has no job that the scheduler knows; its run can be ended all the same. */
function loose(run: Execution): Job {
  return { id: run.job_id, status: "running", source_name: `job ${run.job_id}`, schedule_enabled: false, type: "crawl", latest_execution: run } as unknown as Job;
}
