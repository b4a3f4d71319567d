import { Link } from "@tanstack/react-router";
import { Operate } from "@/app/Operate";
import { buttonClass } from "@/design/Button";
import { Card, Placeholder } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Tag } from "@/design/Tag";
import { t } from "@/language/control/overview";
import { count } from "../charts/format";
import { PauseButton } from "../executions/Paused";
import type { Job } from "../jobs/useJobs";
import { WaitNotice, waitTitle } from "../jobs/Waits";
import { isPaused } from "../jobs/words";
import { Moment } from "../live/Moment";
import { useNow } from "../live/useNow";
import type { Host, Running } from "./useOverview";
import { whyItWaits } from "./waiting";

/** The runs under way, and what their frontiers hold, by state; while there are none, what to do. */
export function Runs({ runs, isLoading, isEmptyArchive }: { runs: Running[]; isLoading: boolean; isEmptyArchive: boolean }) {
  return (
    <Card title={t("running")} className="min-h-72 sm:min-h-40">
      <DataTable caption={t("runningCaption")} rows={runs} keyOf={(run) => run.id} empty={isLoading ? <Placeholder lines={1} /> : <NoRuns isEmptyArchive={isEmptyArchive} />} columns={[
        { head: t("run"), cell: (run) => <><Link to="/control/executions/$id" params={{ id: String(run.id) }} className="inline-block min-h-6">{run.source} <span className="tabular-nums">#{run.id}</span></Link>{isPaused(run.job.latest_execution) && <span className="ml-2"><Tag tone="warn">{t("paused")}</Tag></span>}</> },
        { head: t("queued"), isNumber: true, cell: (run) => amount(run.stats?.pending) },
        { head: t("activeHosts"), isNumber: true, cell: (run) => amount(run.stats?.inProgress) },
        { head: t("done"), isNumber: true, cell: (run) => amount(run.stats?.completed) },
        { head: t("failed"), isNumber: true, cell: (run) => amount(run.stats?.failed) },
        { head: t("leftOut"), isNumber: true, cell: (run) => amount(run.stats?.ruledOut) },
        { head: t("hosts"), isNumber: true, cell: (run) => (run.stats?.pausedDomains ? t("hostsPaused", { number: run.stats.totalDomains, paused: run.stats.pausedDomains }) : amount(run.stats?.totalDomains)) },
        { head: <span className="sr-only">{t("pauseOrResume")}</span>, cell: (run) => <Operate><PauseButton job={run.job} /></Operate> },
      ]} />
    </Card>
  );
}

function NoRuns({ isEmptyArchive }: { isEmptyArchive: boolean }) {
  return (
    <>
      <p className="font-semibold">{t("nothing")}</p>
      <p className="mt-1 text-soft">{t(isEmptyArchive ? "emptyHow" : "idleHow")}</p>
      <p className="mt-3 flex flex-wrap gap-2"><Operate><Link to="/control/start" className={buttonClass("main")}>{t(isEmptyArchive ? "addFirst" : "add")}</Link></Operate><Link to="/control/jobs" className={buttonClass()}>{t("jobs")}</Link></p>
    </>
  );
}

function amount(value: number | undefined): string {
  return value === undefined ? "\u2007" : count(value);
}

/** Runs that no worker has started, by what they wait for; nothing while there are none. */
export function WaitingRuns({ jobs }: { jobs: Job[] }) {
  const [first] = jobs;
  if (!first) return null;
  return (
    <>
      <WaitNotice run={first.latest_execution} job={first} />
      <Card title={t("waitingRuns")}>
        <DataTable caption={t("waitingRunsCaption")} rows={jobs.slice(0, SHOWN)} keyOf={(job) => job.id} empty={null} columns={[
          { head: t("run"), cell: (job) => <Link to="/control/executions/$id" params={{ id: String(job.latest_execution?.id) }} className="inline-block min-h-6">{job.source_name} <span className="tabular-nums">#{job.latest_execution?.id}</span></Link> },
          { head: t("why"), cell: (job) => waitTitle(job.latest_execution) },
          { head: t("queuedAt"), cell: (job) => <Moment at={job.latest_execution?.queued_at ?? job.created_at} relative /> },
        ]} />
        {jobs.length > SHOWN && <p className="mt-2 text-sm text-soft">{t("moreRuns", { count: jobs.length - SHOWN })}</p>}
      </Card>
    </>
  );
}

const SHOWN = 12;

/** Hosts of the runs that have something queued and are not being asked, and why. */
export function WaitingHosts({ runs }: { runs: Running[] }) {
  const now = useNow();
  const isKnown = runs.every((run) => run.hosts);
  const found = runs.flatMap((run) => (run.hosts ?? []).flatMap((host) => {
    // A run that waits keeps all its hosts waiting, and for one reason.
    const why = isPaused(run.job.latest_execution) && host.pending > 0 ? t("runPaused") : whyItWaits(host, now);
    return why ? [{ run, host, why }] : [];
  }));
  return (
    <Card title={t("waitingHosts")} className="min-h-32">
      <DataTable caption={t("waitingHostsCaption")} rows={found.slice(0, SHOWN)} keyOf={({ run, host }) => `${run.id} ${host.domain}`}
        empty={isKnown ? <p className="text-soft">{t("noHost")}</p> : <Placeholder lines={1} />} columns={[
          { head: t("host"), cell: ({ host }) => <span className="break-all">{host.domain}</span> },
          { head: t("reason"), cell: ({ why }) => why },
          { head: t("queued"), isNumber: true, cell: ({ host }: { host: Host }) => count(host.pending) },
        ]} />
      {found.length > SHOWN && <p className="mt-2 text-sm text-soft">{t("moreHosts", { count: found.length - SHOWN })}</p>}
    </Card>
  );
}
