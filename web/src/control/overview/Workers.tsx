import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Card, Placeholder } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Tag } from "@/design/Tag";
import { duration } from "../charts/format";
import { useWorkers, type Worker } from "./useOverview";

const KINDS: Record<string, string> = { worker: "worker", runner: "runner", scheduler: "scheduler", supervisor: "supervisor", process: "crawler", indexer: "indexer", visitor: "command", other: "process" };

/** The processes at work on all machines, what each asks for now, and how long it has lived. */
export function Workers() {
  const { data, error, refetch, isPending } = useWorkers();
  return (
    <Card title="Processes" className="min-h-48">
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <DataTable caption="Processes at work" rows={data?.items ?? []} keyOf={(worker) => worker.id} columns={[
        { head: "Process", cell: (worker) => <>{KINDS[worker.kind] ?? worker.kind} <span className="text-sm break-all text-soft">{worker.name}</span></> },
        { head: "At", cell: (worker) => <At worker={worker} /> },
        { head: "Age", isNumber: true, cell: (worker) => duration(worker.ageSeconds) },
        { head: "Last seen", cell: (worker) => (worker.isAlive ? <span className="tabular-nums">{duration(worker.silentSeconds)} ago</span> : <Tag tone="bad">silent for {duration(worker.silentSeconds)}</Tag>) },
      ]} empty={isPending ? <Placeholder lines={3} /> : <p className="text-soft">No process is at work. Crawls run once a worker is started: <code>holdfast serve</code> runs one, <code>holdfast worker start</code> another.</p>} />
    </Card>
  );
}

function At({ worker }: { worker: Worker }) {
  const nothing = worker.urls.length === 0 && worker.domains.length === 0 && worker.executions.length === 0;
  if (nothing) return <span className="text-soft">idle</span>;
  return (
    <span className="block min-w-0 space-y-0.5">
      {worker.executions.map((run) => <Link key={run.id} to="/control/executions/$id" params={{ id: String(run.id) }} className="mr-2 inline-block min-h-6">{run.source} #{run.id}</Link>)}
      {worker.urls.slice(0, 3).map((url) => <span key={url} className="block text-sm break-all">{url}</span>)}
      {worker.urls.length === 0 && worker.domains.length > 0 && <span className="block text-sm break-all text-soft">{worker.domains.slice(0, 3).join(", ")}{worker.domains.length > 3 ? ` and ${worker.domains.length - 3} more` : ""}</span>}
    </span>
  );
}
