import type { ReactNode } from "react";
import { Problem } from "@/app/Problem";
import { duration } from "@/control/charts/format";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { t as overview } from "@/language/control/overview";
import { withParts } from "@/language/room";
import { alerted, alertName } from "@/control/overview/alerted";
import { AlertMessage } from "@/control/overview/AlertMessage";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag, type Tone } from "@/design/Tag";
import { useAlerts, useHealth, useReadiness, useWorkers } from "./useHealth";
import { t } from "@/language/control/health";
import { t as common } from "@/language/control/common";

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
      <PageHead title={t("title")}>{t("intro")}</PageHead>
      {health.error || ready.error || alerts.error ? <div className="mb-4"><Problem problem={health.error ?? ready.error ?? alerts.error} onAgain={() => { void health.refetch(); void ready.refetch(); void alerts.refetch(); }} /></div> : null}
      {firing.map((alert) => <div key={alert.id} className="mb-3"><Notice tone={alert.severity === "critical" ? "bad" : "warn"} title={alerted(alert)}><AlertMessage alert={alert} />{withParts(t("alertSince", { name: alertName(alert.name) }), { time: <Moment at={alert.since} /> })}</Notice></div>)}
      <dl className="mb-4 grid min-h-24 grid-cols-2 gap-3 sm:grid-cols-4">
        <Figure label={t("answer")} value={ready.data ? t.of("word", ready.data.status) : "–"} />
        <Figure label={t("up")} value={found ? duration(found.uptime) : "–"} />
        <Figure label={t("version")} value={found?.version ?? "–"} />
        <Figure label={t("processesNow")} value={found?.workers ?? "–"} />
      </dl>
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
        <Card title={t("depends")}><Words rows={parts} /></Card>
        <Card title={t("parts")}>{found?.checks.parts ? <Words rows={Object.entries(found.checks.parts)} /> : <p className="text-soft">{found ? t("partsAlone") : common("loading")}</p>}</Card>
        <Card title={t("processes")} className="min-w-0 lg:col-span-2">
          {workers.error ? <Problem problem={workers.error} /> : (
            <DataTable caption={t("processes")} rows={workers.data?.items ?? []} keyOf={(row) => row.id} empty={<p className="min-h-12 text-soft">{workers.data ? t("noProcess") : common("loading")}</p>} columns={[
              { head: t("process"), cell: (row) => <span className="break-all">{row.name}</span> },
              { head: t("kind"), cell: (row) => overview.of("kind", row.kind) },
              { head: t("state"), cell: (row) => <Tag tone={row.isAlive ? "good" : "bad"}>{t(row.isAlive ? "alive" : "silent")}</Tag> },
              { head: t("seen"), cell: (row) => common("ago", { time: duration(row.silentSeconds) }) },
              { head: t("worksOn"), cell: (row) => row.executions.map((one) => t("run", { id: String(one.id), source: one.source })).join(", ") || "–" },
            ]} />
          )}
        </Card>
        <Card title={t("past")} className="lg:col-span-2">
          <DataTable caption={t("past")} rows={alerts.data?.items.filter((one) => one.state === "resolved") ?? []} keyOf={(row) => row.id} empty={<p className="min-h-12 text-soft">{alerts.data ? t("none") : common("loading")}</p>} columns={[
            { head: t("alert"), cell: (row) => alertName(row.name) },
            { head: t("message"), cell: (row) => <span className="break-words">{alerted(row)}<AlertMessage alert={row} /></span> },
            { head: t("from"), cell: (row) => <Moment at={row.since} /> },
            { head: t("to"), cell: (row) => <Moment at={row.resolvedAt} /> },
          ]} />
        </Card>
      </div>
    </>
  );
}

function Words({ rows }: { rows: [string, string][] }): ReactNode {
  return <ul className="min-h-24 divide-y divide-line">{rows.map(([name, word]) => <li key={name} className="flex justify-between gap-4 py-1.5"><span>{t.of("part", name)}</span><Tag tone={toneOf(word)}>{t.of("word", word)}</Tag></li>)}</ul>;
}
