import { Link, useNavigate } from "@tanstack/react-router";
import { Suspense, useEffect } from "react";
import { Problem } from "@/app/Problem";
import { executionRoute } from "@/app/crawlRoutes";
import { lazyPage } from "@/app/lazyPage";
import { buttonClass } from "@/design/Button";
import { Placeholder } from "@/design/Card";
import { Notice } from "@/design/Notice";
import { Tabs } from "@/design/Tabs";
import { Tag } from "@/design/Tag";
import { duration } from "../charts/format";
import { JobActions } from "../jobs/JobActions";
import { WaitNotice } from "../jobs/Waits";
import { useJob, type Job } from "../jobs/useJobs";
import { isAhead, runDeedsOf, runStateOf, stateWord, toneOf } from "../jobs/words";
import { LiveSign } from "../live/LiveSign";
import { Moment } from "../live/Moment";
import { useNow } from "../live/useNow";
import { useCrawlNews } from "../overview/useOverview";
import { sentence } from "../page/words";
import { readAskedRun, type RunTab } from "./asked";
import { Errors } from "./Errors";
import { Now } from "./Now";
import { PausedNotice } from "./Paused";
import { endingText } from "./outcomes";
import { Result } from "./Result";
import { WhatItBrought } from "./WhatItBrought";
import { Urls } from "./Urls";
import { useExecution, type Execution } from "./useExecution";
import { t } from "@/language/control/executions";
import { withParts } from "@/language/room";

// Three tabs are loaded when they are opened: a first visit has a budget.
const Exclusions = lazyPage(() => import("./Exclusions"), "Exclusions");
const Hosts = lazyPage(() => import("./Hosts"), "Hosts");
const LogView = lazyPage(() => import("./LogView"), "LogView");

/** One run: while it runs what it is at, afterwards its pages; its errors, hosts, log and rules, and what came of it. */
export function ExecutionPage() {
  const id = Number(executionRoute.useParams().id);
  const asked = readAskedRun({ ...executionRoute.useSearch() });
  const navigate = useNavigate();
  const news = useCrawlNews();
  const { data: run, error, refetch } = useExecution(id, news);
  const job = useJob(run?.job_id ?? -1, news);
  const name = job.data?.source_name ?? "";
  useEffect(() => { document.title = `${name || t("run")} #${id} · Holdfast`; }, [name, id]);
  if (error && !run) return <Problem problem={error} onAgain={() => void refetch()} />;
  // A run of the command line has no such job: asking again for it takes no page away.
  if (!run || (job.isPending && job.errorUpdateCount === 0)) return <div className="min-h-96" aria-busy />;
  const isRunning = run.status === "running";
  const isOver = run.ending !== null;
  const next = job.data?.latest_execution;
  const go = (tab: string) => void navigate({ to: "/control/executions/$id", params: { id: String(id) }, search: readAskedRun({ tab }) });
  return (
    <div className="space-y-5">
      <header>
        <p className="text-sm"><Link to="/control/jobs">{t("jobs")}</Link> / <Link to="/control/jobs/$id" params={{ id: String(run.job_id) }}>{job.data?.name ?? job.data?.source_name ?? t("jobName", { id: String(run.job_id) })}</Link></p>
        <div className="flex flex-wrap items-center justify-between gap-3">
          <h1 className="min-w-0 text-2xl break-words">{name} <span className={name ? "text-soft tabular-nums" : "tabular-nums"}>{t(name ? "runNameSmall" : "runName", { id: String(id) })}</span></h1>
          <span className="flex items-center gap-3"><Tag tone={toneOf(runStateOf(run))}>{stateWord(runStateOf(run))}</Tag>{isRunning && <LiveSign liveness={news} />}</span>
        </div>
        <p className="text-soft"><Span run={run} /></p>
      </header>
      {/* What was said of a run that ran is over when it has ended. */}
      {job.data ? <JobActions key={runStateOf(run)} job={job.data.latest_execution?.id === id ? job.data : { ...job.data, status: "cancelled" }} only={runDeedsOf(run)} /> : isRunning && <JobActions job={loose(run)} only={runDeedsOf(run)} />}
      <PausedNotice run={run} />
      <WaitNotice run={run} job={job.data} />
      {next && next.id > id && <Notice title={withParts(t(next.resumed_from === id ? "goesOn" : "newerRun"), { run: <Link to="/control/executions/$id" params={{ id: String(next.id) }}>{t("runNameSmall", { id: String(next.id) })}</Link> })} />}
      <Ending run={run} />
      {isOver && <WhatItBrought run={run} job={job.data} />}
      <Tabs label={t("parts")} value={asked.tab ?? (isOver ? "urls" : "now")} onChange={go} tabs={[
        { value: "now" satisfies RunTab, label: t(isOver ? "tab.summary" : "tab.now"), content: <Now run={run} isRunning={isRunning} /> },
        { value: "urls" satisfies RunTab, label: t("pages"), content: <Urls id={id} asked={asked} isRunning={isRunning} /> },
        { value: "errors" satisfies RunTab, label: t("errors"), content: <Errors id={id} isRunning={isRunning} /> },
        { value: "hosts" satisfies RunTab, label: t("hosts"), content: <Suspense fallback={<Placeholder lines={8} />}><Hosts id={id} isRunning={isRunning} /></Suspense> },
        { value: "log" satisfies RunTab, label: t("log"), content: <Suspense fallback={<Placeholder lines={8} />}><LogView key={id} jobId={run.job_id} execution={run.execution_number} isEnded={isOver} /></Suspense> },
        { value: "rules" satisfies RunTab, label: t("exclusions"), content: <Suspense fallback={<Placeholder lines={8} />}><Exclusions key={id} id={id} isRunning={isRunning} isAhead={isAhead(run)} /></Suspense> },
        { value: "result" satisfies RunTab, label: t("result"), content: <Result run={run} source={job.data?.source_code} isRunning={isRunning} /> },
      ]} />
    </div>
  );
}

/** How it ended, and what that means. */
function Ending({ run }: { run: Execution }) {
  if (!run.sentence || run.ending === null) return null;
  const said = run.ending === "failed" && run.error_message ? run.error_message : sentence(endingText({ ...run, sentence: run.sentence }));
  const left = run.shortfalls["stopped"] ?? 0;
  const isStopped = run.ending === "stopped";
  const trouble = run.ending === "failed" ? null : run.error_message;
  const tone = run.ending === "completed" && !trouble ? "good" : run.ending === "failed" ? "bad" : "warn";
  return <Notice tone={tone} title={t.of("ending", run.ending)} actions={<LeftOut run={run} />}>{!isStopped ? said : left ? t("notCrawled", { count: left }) : t("nothingLeft")}{trouble && <p>{sentence(trouble)}</p>}</Notice>;
}

/** Shortfalls whose addresses are listed, with the reason of each; links over built-in limits are only counted, by rule and host. */
const LISTED: Record<string, string> = { stopped: "stopped", max_pages: "over_limit:max_pages", max_bytes: "over_limit:max_bytes", max_time: "over_limit:max_time" };

/** Leads to what a stop or a limit left out. */
function LeftOut({ run: { id, shortfalls } }: { run: Execution }) {
  const listed = Object.keys(LISTED).find((name) => shortfalls[name]);
  const search = listed ? { tab: "urls" as const, reason: LISTED[listed] } : "limits" in shortfalls ? { tab: "result" as const } : null;
  return search && <Link to="/control/executions/$id" params={{ id: String(id) }} search={search} className={buttonClass()}>{t("showLeft")}</Link>;
}

function Span({ run }: { run: Execution }) {
  const now = useNow();
  if (!run.started_at && run.completed_at) return <>{withParts(t("spanNever"), { queued: <Moment at={run.queued_at ?? run.created_at} both /> })}</>;
  if (!run.started_at) return <>{withParts(t("spanQueued"), { queued: <Moment at={run.queued_at ?? run.created_at} relative /> })}</>;
  if (!run.completed_at) return <>{withParts(t("spanNow", { time: duration(Math.max(0, (now - Date.parse(run.started_at)) / 1000)), rest: rested(run) }), { start: <Moment at={run.started_at} both /> })}</>;
  return <>{withParts(t("span", { time: run.duration_ms === null ? "" : `, ${duration(run.duration_ms / 1000)}`, rest: rested(run) }), { start: <Moment at={run.started_at} both />, end: <Moment at={run.completed_at} both /> })}</>;
}

/** How long the pauses of a run lasted that are over. */
function rested(run: Execution): string {
  return run.paused_seconds >= 1 ? t("rested", { time: duration(run.paused_seconds) }) : "";
}

/** A crawl of the command line has no job that the scheduler knows; its run can be ended all the same. */
function loose(run: Execution): Job {
  return { id: run.job_id, status: "running", source_name: t("jobName", { id: String(run.job_id) }), schedule_enabled: false, type: "crawl", latest_execution: run } as unknown as Job;
}
