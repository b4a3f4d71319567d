import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Card, Placeholder } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Tag } from "@/design/Tag";
import { duration } from "../charts/format";
import { useWorkers, type Worker } from "./useOverview";
import { t } from "@/language/control/overview";
import { withParts } from "@/language/room";

const KINDS = ["worker", "runner", "scheduler", "supervisor", "process", "indexer", "visitor", "other"] as const;

/** The processes at work on all machines, what each asks for now, and how long it has lived. */
export function Workers() {
  const { data, error, refetch, isPending } = useWorkers();
  return (
    <Card title={t("processes")} className="min-h-48">
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <DataTable caption={t("processesCaption")} rows={data?.items ?? []} keyOf={(worker) => worker.id} columns={[
        { head: t("process"), cell: (worker) => <>{kindOf(worker.kind)} <span className="text-sm break-all text-soft">{worker.name}</span></> },
        { head: t("at"), cell: (worker) => <At worker={worker} /> },
        { head: t("age"), isNumber: true, cell: (worker) => duration(worker.ageSeconds) },
        { head: t("lastSeen"), cell: (worker) => (worker.isAlive ? <span className="tabular-nums">{t("agoSeen", { time: duration(worker.silentSeconds) })}</span> : <Tag tone="bad">{t("silent", { time: duration(worker.silentSeconds) })}</Tag>) },
      ]} empty={isPending ? <Placeholder lines={3} /> : <p className="text-soft">{withParts(t("noProcess"), { serve: <code>holdfast serve</code>, start: <code>holdfast start-worker</code> })}</p>} />
    </Card>
  );
}

function kindOf(kind: string): string {
  const known = KINDS.find((one) => one === kind);
  return known ? t(`kind.${known}`) : kind;
}

function At({ worker }: { worker: Worker }) {
  const nothing = worker.urls.length === 0 && worker.domains.length === 0 && worker.executions.length === 0;
  if (nothing) return <span className="text-soft">{t("idle")}</span>;
  return (
    <span className="block min-w-0 space-y-0.5">
      {worker.executions.map((run) => <Link key={run.id} to="/control/executions/$id" params={{ id: String(run.id) }} className="mr-2 inline-block min-h-6">{run.source} #{run.id}</Link>)}
      {worker.urls.slice(0, 3).map((url) => <span key={url} className="block text-sm break-all">{url}</span>)}
      {worker.urls.length === 0 && worker.domains.length > 0 && <span className="block text-sm break-all text-soft">{worker.domains.length > 3 ? t("andMore", { hosts: worker.domains.slice(0, 3).join(", "), count: worker.domains.length - 3 }) : worker.domains.join(", ")}</span>}
    </span>
  );
}
