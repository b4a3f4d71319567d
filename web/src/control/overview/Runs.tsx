import { Link } from "@tanstack/react-router";
import { buttonClass } from "@/design/Button";
import { Card, Placeholder } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Tag } from "@/design/Tag";
import { count, counted } from "../charts/format";
import { PauseButton } from "../executions/Paused";
import { isPaused } from "../jobs/words";
import { useNow } from "../live/useNow";
import type { Host, Running } from "./useOverview";
import { whyItWaits } from "./waiting";

/** The runs under way, and what their frontiers hold, by state; while there are none, what to do. */
export function Runs({ runs, isLoading, isEmptyArchive }: { runs: Running[]; isLoading: boolean; isEmptyArchive: boolean }) {
  return (
    <Card title="Under way" className="min-h-72 sm:min-h-40">
      <DataTable caption="Runs under way, with their frontiers by state" rows={runs} keyOf={(run) => run.id} empty={isLoading ? <Placeholder lines={1} /> : <NoRuns isEmptyArchive={isEmptyArchive} />} columns={[
        { head: "Run", cell: (run) => <><Link to="/control/executions/$id" params={{ id: String(run.id) }} className="inline-block min-h-6">{run.source} <span className="tabular-nums">#{run.id}</span></Link>{isPaused(run.job.latest_execution) && <span className="ml-2"><Tag tone="warn">paused</Tag></span>}</> },
        { head: "Queued", isNumber: true, cell: (run) => amount(run.stats?.pending) },
        { head: "Asked now", isNumber: true, cell: (run) => amount(run.stats?.inProgress) },
        { head: "Done", isNumber: true, cell: (run) => amount(run.stats?.completed) },
        { head: "Failed", isNumber: true, cell: (run) => amount(run.stats?.failed) },
        { head: "Left out", isNumber: true, cell: (run) => amount(run.stats?.ruledOut) },
        { head: "Hosts", isNumber: true, cell: (run) => <>{amount(run.stats?.totalDomains)}{run.stats?.pausedDomains ? ` (${count(run.stats.pausedDomains)} paused)` : ""}</> },
        { head: <span className="sr-only">Pause or resume</span>, cell: (run) => <PauseButton job={run.job} /> },
      ]} />
    </Card>
  );
}

function NoRuns({ isEmptyArchive }: { isEmptyArchive: boolean }) {
  return (
    <>
      <p className="font-semibold">Nothing is being crawled.</p>
      <p className="mt-1 text-soft">{isEmptyArchive ? "Runs, their pace and what needs you appear here once the first website is crawled." : "A job runs when its time comes. To crawl something now, open a job and run it, or add a website."}</p>
      <p className="mt-3 flex flex-wrap gap-2"><Link to="/control/start" className={buttonClass("main")}>{isEmptyArchive ? "Add your first website" : "Add a website"}</Link><Link to="/control/jobs" className={buttonClass()}>Jobs</Link></p>
    </>
  );
}

function amount(value: number | undefined): string {
  return value === undefined ? "\u2007" : count(value);
}

const SHOWN = 12;

/** Hosts of the runs that have something queued and are not being asked, and why. */
export function WaitingHosts({ runs }: { runs: Running[] }) {
  const now = useNow();
  const isKnown = runs.every((run) => run.hosts);
  const found = runs.flatMap((run) => (run.hosts ?? []).flatMap((host) => {
    // A run that waits keeps all its hosts waiting, and for one reason.
    const why = isPaused(run.job.latest_execution) && host.pending > 0 ? "Its run is paused." : whyItWaits(host, now);
    return why ? [{ run, host, why }] : [];
  }));
  return (
    <Card title="Waiting hosts" className="min-h-32">
      <DataTable caption="Hosts that wait, and why" rows={found.slice(0, SHOWN)} keyOf={({ run, host }) => `${run.id} ${host.domain}`}
        empty={isKnown ? <p className="text-soft">No host keeps a run waiting.</p> : <Placeholder lines={1} />} columns={[
          { head: "Host", cell: ({ host }) => <span className="break-all">{host.domain}</span> },
          { head: "Why", cell: ({ why }) => why },
          { head: "Queued", isNumber: true, cell: ({ host }: { host: Host }) => count(host.pending) },
        ]} />
      {found.length > SHOWN && <p className="mt-2 text-sm text-soft">{counted(found.length - SHOWN, "more host")}; the page of a run lists all of its own.</p>}
    </Card>
  );
}
