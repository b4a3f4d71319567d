import type { ReactNode } from "react";
import { Problem } from "@/app/Problem";
import { duration } from "@/control/charts/format";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { plain } from "@/control/page/words";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag, type Tone } from "@/design/Tag";
import { useAlerts, useHealth, useReadiness, useWorkers } from "./useHealth";

function toneOf(word: string): Tone {
  if (["ok", "running", "ready"].includes(word)) return "good";
  if (["not configured", "waiting", "starting"].includes(word)) return "plain";
  return ["stopping", "stopped", "low"].includes(word) ? "warn" : "bad";
}

/** Whether everything works: parts, disk, database, processes, and what is wrong. */
export function HealthPage() {
  const health = useHealth();
  const ready = useReadiness();
  const alerts = useAlerts();
  const workers = useWorkers();
  const found = health.data;
  const firing = alerts.data?.items.filter((one) => one.state === "firing") ?? [];
  const parts: [string, string][] = [
    ...Object.entries(ready.data?.parts ?? {}),
    ...(found ? [["redis", found.services.redis], ["disk", found.checks.disk ?? "ok"], ["writes", found.checks.writes ?? "ok"]] as [string, string][] : []),
  ];
  return (
    <>
      <PageHead title="Health">Whether everything works. Monitors ask the same at /health/live, /health/ready and /metrics.</PageHead>
      {health.error || ready.error || alerts.error ? <div className="mb-4"><Problem problem={health.error ?? ready.error ?? alerts.error} onAgain={() => { void health.refetch(); void ready.refetch(); void alerts.refetch(); }} /></div> : null}
      {firing.map((alert) => <div key={alert.id} className="mb-3"><Notice tone={alert.severity === "critical" ? "bad" : "warn"} title={alert.message}>{plain(alert.name)}, since <Moment at={alert.since} /></Notice></div>)}
      <dl className="mb-4 grid min-h-24 grid-cols-2 gap-3 sm:grid-cols-4">
        <Figure label="Answer to monitors" value={ready.data ? plain(ready.data.status) : "–"} />
        <Figure label="Up for" value={found ? duration(found.uptime) : "–"} />
        <Figure label="Version" value={found?.version ?? "–"} />
        <Figure label="Processes at work" value={found?.workers ?? "–"} />
      </dl>
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
        <Card title="What the server depends on"><Words rows={parts} /></Card>
        <Card title="Parts of holdfast serve">{found?.checks.parts ? <Words rows={Object.entries(found.checks.parts)} /> : <p className="text-soft">{found ? "The parts run on their own here: holdfast serve would tell of them." : "Asking…"}</p>}</Card>
        <Card title="Processes" className="min-w-0 lg:col-span-2">
          {workers.error ? <Problem problem={workers.error} /> : (
            <DataTable caption="Processes" rows={workers.data?.items ?? []} keyOf={(row) => row.id} empty={<p className="min-h-12 text-soft">{workers.data ? "No process is at work." : "Asking…"}</p>} columns={[
              { head: "Process", cell: (row) => <span className="break-all">{row.name}</span> },
              { head: "Does", cell: (row) => row.kind },
              { head: "State", cell: (row) => <Tag tone={row.isAlive ? "good" : "bad"}>{row.isAlive ? "alive" : "silent"}</Tag> },
              { head: "Last seen", cell: (row) => `${duration(row.silentSeconds)} ago` },
              { head: "Works on", cell: (row) => row.executions.map((one) => `execution ${one.id} of ${one.source}`).join(", ") || "–" },
            ]} />
          )}
        </Card>
        <Card title="Alerts that passed" className="lg:col-span-2">
          <DataTable caption="Alerts that passed" rows={alerts.data?.items.filter((one) => one.state === "resolved") ?? []} keyOf={(row) => row.id} empty={<p className="min-h-12 text-soft">{alerts.data ? "None so far." : "Asking…"}</p>} columns={[
            { head: "Alert", cell: (row) => plain(row.name) },
            { head: "Said", cell: (row) => <span className="break-words">{row.message}</span> },
            { head: "From", cell: (row) => <Moment at={row.since} /> },
            { head: "To", cell: (row) => <Moment at={row.resolvedAt} /> },
          ]} />
        </Card>
      </div>
    </>
  );
}

function Words({ rows }: { rows: [string, string][] }): ReactNode {
  return <ul className="min-h-24 divide-y divide-line">{rows.map(([name, word]) => <li key={name} className="flex justify-between gap-4 py-1.5"><span>{plain(name)}</span><Tag tone={toneOf(word)}>{word}</Tag></li>)}</ul>;
}
