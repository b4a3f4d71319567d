import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag, type Tone } from "@/design/Tag";
import { count, counted, share } from "../charts/format";
import { Meter } from "../charts/Meter";
import { leftOf } from "./outcomes";
import { useReport, useRunChanges, type Execution, type Report } from "./useExecution";

const KINDS: Record<string, Tone> = { new: "good", new_page: "good", updated: "accent", gone: "bad" };

/** What a run brought: how much of what it meant to, and what had changed since the one before. */
export function Result({ run, source, isRunning }: { run: Execution; source: string | undefined; isRunning: boolean }) {
  const { data: report, error, refetch } = useReport(run.id, isRunning);
  return (
    <div className="space-y-5">
      {isRunning && <Notice title="The run is under way.">Coverage grows until it ends; changes are computed when its captures are indexed.</Notice>}
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
    ["Known", report.total, "addresses that it met within its scope"],
    ["Asked for", report.total - report.open - ruled, left ? `neither left out by a rule or robots.txt, nor among the ${count(left)} it did not get to` : "not left out by a rule or robots.txt"],
    ["Captured", captured, report.redirects ? `pages and what they embed; ${counted(report.redirects, "redirect")} not included` : "pages and what they embed"],
  ];
  const most = Math.max(1, report.total);
  return (
    <Card title="Coverage">
      <ol className="space-y-3">
        {steps.map(([name, number, said]) => (
          <li key={name}>
            <p className="flex flex-wrap justify-between gap-2"><span><strong>{name}</strong> <span className="text-sm text-soft">{said}</span></span><span className="tabular-nums">{count(number)} ({share(number / most)})</span></p>
            <Meter label={`${name}: ${count(number)} of ${count(report.total)}`} value={number} most={most} />
          </li>
        ))}
      </ol>
      <p className="mt-4"><strong>{counted(run.items_indexed, "readable document")}</strong> in the index{run.index_status && run.index_status !== "indexed" ? ` (${run.index_status.replaceAll("_", " ")})` : ""}. <span className="text-sm text-soft">HTML, text and PDF of this run that search and changes read; robots.txt and the error pages of servers are among them, images are not.</span></p>
      {report.excluded.length > 0 && (
        <details className="mt-4">
          <summary className="inline-block min-h-6 underline">Links that were not followed ({counted(report.excluded.length, "host and rule", "hosts and rules")})</summary>
          <DataTable caption="Links that were not followed, by rule and host" rows={report.excluded.slice(0, 50)} keyOf={(one) => `${one.rule} ${one.host}`} empty={null} columns={[
            { head: "Host", cell: (one) => <span className="break-all">{one.host}</span> },
            { head: "Rule", cell: (one) => <code className="text-sm break-all">{one.rule}</code> },
            { head: "Links", isNumber: true, cell: (one) => count(one.count) },
          ]} />
        </details>
      )}
      <p className="mt-4 flex flex-wrap gap-x-6 gap-y-1"><a href={`/api/executions/${run.id}/wacz`} download>Download as WACZ</a><Link to="/control/executions/$id" params={{ id: String(run.id) }} search={{ tab: "urls", status: "failed", kind: "all" }}>What failed</Link></p>
    </Card>
  );
}

function Changes({ run, source }: { run: Execution; source: string | undefined }) {
  const { data, error, refetch } = useRunChanges(run.id);
  return (
    <Card title="Changes" className="min-h-40" actions={<>{data && <span className="text-sm text-soft">{counted(data.total, "change")} since earlier captures</span>}{source && <Link to="/changes" search={{ source }}>All changes of this source</Link>}</>}>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <DataTable caption="What changed with this run" rows={data?.results ?? []} keyOf={(one) => `${one.changeId} ${one.toSnapshotId}`} empty={error && !data ? null : <p className="text-soft">{data ? "Nothing that it captured was different from before, or it is not compared yet." : "Looking for changes…"}</p>} columns={[
        { head: "What", cell: (one) => <Tag tone={KINDS[one.changeType] ?? "plain"}>{one.changeType.replaceAll("_", " ")}</Tag> },
        { head: "Page", cell: (one) => <><span className="block break-words">{one.summary}</span><span className="text-sm break-all text-soft">{one.normalizedUrlGroup}</span></> },
        { head: "Lines", isNumber: true, cell: (one) => (one.addedLines === null ? "–" : `+${one.addedLines} −${one.removedLines ?? 0}`) },
        { head: "", cell: (one) => (one.diffAvailable ? <Link to="/compare" search={{ to: one.toSnapshotId, ...(one.fromSnapshotId ? { from: one.fromSnapshotId } : {}) }} className="inline-block min-h-6">Compare</Link> : null) },
      ]} />
    </Card>
  );
}
