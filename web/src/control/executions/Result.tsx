import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag, type Tone } from "@/design/Tag";
import { count, share } from "../charts/format";
import { Meter } from "../charts/Meter";
import { leftOf, reasonText } from "./outcomes";
import { useReport, useRunChanges, type Execution, type Report } from "./useExecution";
import { t } from "@/language/control/executions";
import { withParts } from "@/language/room";

const KINDS: Record<string, Tone> = { new: "good", new_page: "good", updated: "accent", gone: "bad" };

/** What a run brought: how much of what it meant to, and what had changed since the one before. */
export function Result({ run, source, isRunning }: { run: Execution; source: string | undefined; isRunning: boolean }) {
  const { data: report, error, refetch } = useReport(run.id, isRunning);
  return (
    <div className="space-y-5">
      {isRunning && <Notice title={t("running")}>{t("runningHow")}</Notice>}
      {report ? <Coverage report={report} run={run} /> : error ? <Problem problem={error} onAgain={() => void refetch()} /> : <div className="min-h-64" aria-busy />}
      <Changes run={run} source={source} />
    </div>
  );
}

function Coverage({ report, run }: { report: Report; run: Execution }) {
  const captured = (report.outcomes["success"] ?? 0) - report.redirects;
  const left = leftOf(report.reasons);
  const ruled = (report.outcomes["excluded"] ?? 0) + (report.outcomes["blocked_robots"] ?? 0);
  const steps: [string, number, string][] = [
    [t("known"), report.total, t("knownHow")],
    [t("requested"), report.total - report.open - ruled, left ? t("requestedLeft", { count: left }) : t("requestedHow")],
    [t("captured"), captured, report.redirects ? t("capturedRedirects", { count: report.redirects }) : t("capturedHow")],
  ];
  const most = Math.max(1, report.total);
  // What our own limits left out comes first: the run is incomplete because of it.
  const excluded = [...report.excluded].sort((a, b) => Number(isLimit(b)) - Number(isLimit(a)));
  return (
    <Card title={t("coverage")}>
      <ol className="space-y-3">
        {steps.map(([name, number, said]) => (
          <li key={name}>
            <p className="flex flex-wrap justify-between gap-2"><span><strong>{name}</strong> <span className="text-sm text-soft">{said}</span></span><span className="tabular-nums">{count(number)} ({share(number / most)})</span></p>
            <Meter label={t("meterOf", { name, number, all: report.total })} value={number} most={most} />
          </li>
        ))}
      </ol>
      <p className="mt-4">{withParts(t("inIndex", { state: run.index_status && run.index_status !== "indexed" ? ` (${t.of("index", run.index_status)})` : "" }), { documents: <strong>{t("documents", { count: run.items_indexed })}</strong> })} <span className="text-sm text-soft">{t("documentsHow")}</span></p>
      {excluded.length > 0 && (
        <details className="mt-4" open={isLimit(excluded[0])}>
          <summary className="inline-block min-h-6 underline">{t("notFollowed", { count: excluded.length })}</summary>
          <DataTable caption={t("notFollowedCaption")} rows={excluded.slice(0, 50)} keyOf={(one) => `${one.rule} ${one.host}`} empty={null} columns={[
            { head: t("host"), cell: (one) => <span className="break-all">{one.host}</span> },
            { head: t("rule"), cell: (one) => <span className="text-sm break-all">{reasonText(one.rule)}</span> },
            { head: t("links"), isNumber: true, cell: (one) => count(one.count) },
          ]} />
        </details>
      )}
      <p className="mt-4 flex flex-wrap gap-x-6 gap-y-1"><a href={`/api/executions/${run.id}/wacz`} download>{t("wacz")}</a><Link to="/control/executions/$id" params={{ id: String(run.id) }} search={{ tab: "urls", status: "failed", kind: "all" }}>{t("whatFailed")}</Link></p>
    </Card>
  );
}

function isLimit(one: Report["excluded"][number] | undefined): boolean {
  return /^(over_limit|trap):/.test(one?.rule ?? "");
}

function Changes({ run, source }: { run: Execution; source: string | undefined }) {
  const { data, error, refetch } = useRunChanges(run.id);
  return (
    <Card title={t("changes")} className="min-h-40" actions={<>{data && <span className="text-sm text-soft">{t("changeCount", { count: data.total })}</span>}{source && <Link to="/changes" search={{ source }}>{t("allChanges")}</Link>}</>}>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <DataTable caption={t("changesCaption")} rows={data?.results ?? []} keyOf={(one) => `${one.changeId} ${one.toSnapshotId}`} empty={error && !data ? null : <p className="text-soft">{t(data ? "noChanges" : "loading")}</p>} columns={[
        { head: t("what"), cell: (one) => <Tag tone={KINDS[one.changeType] ?? "plain"}>{t.of("change", one.changeType)}</Tag> },
        { head: t("page"), cell: (one) => <><span className="block break-words">{one.summary}</span><span className="text-sm break-all text-soft">{one.normalizedUrlGroup}</span></> },
        { head: t("linesHead"), isNumber: true, cell: (one) => (one.addedLines === null ? "–" : `+${one.addedLines} −${one.removedLines ?? 0}`) },
        { head: "", cell: (one) => (one.diffAvailable ? <Link to="/compare" search={{ to: one.toSnapshotId, ...(one.fromSnapshotId ? { from: one.fromSnapshotId } : {}) }} className="inline-block min-h-6">{t("compare")}</Link> : null) },
      ]} />
    </Card>
  );
}
