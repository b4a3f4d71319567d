import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { count, counted } from "../charts/format";
import { missesOf, outcomeTone, type Reason } from "./outcomes";
import { useReport } from "./useExecution";

const SHOWN = 50;

/** What a run did not capture, grouped by reason: how often, some of the addresses, and all of them. */
export function Errors({ id, isRunning }: { id: number; isRunning: boolean }) {
  const { data: report, error, refetch } = useReport(id, isRunning);
  if (error && !report) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!report) return <div className="min-h-64" aria-busy />;
  const reasons = missesOf(report.reasons);
  return (
    <div className="min-h-48 space-y-3">
      <DataTable caption="What was not captured, by reason" rows={reasons.slice(0, SHOWN)} keyOf={(one) => `${one.outcome} ${one.reason}`} empty={<Notice tone={isRunning ? "info" : "good"} title="No errors">{isRunning ? "Addresses that cannot be captured appear here, grouped by reason." : "Everything that was requested was captured."}</Notice>} columns={[
        { head: "Reason", cell: (one) => <Why one={one} /> },
        { head: "Addresses", isNumber: true, cell: (one) => <Link to="/control/executions/$id" params={{ id: String(id) }} search={{ tab: "urls", reason: one.reason }} className="inline-block min-h-6">{counted(one.count, "address", "addresses")}</Link> },
        { head: "Examples", cell: (one) => <Examples one={one} /> },
      ]} />
      {reasons.length > SHOWN && <p className="text-sm text-soft">{count(reasons.length - SHOWN)} rarer reasons are not shown; the CSV of failed addresses has them all.</p>}
    </div>
  );
}

function Why({ one }: { one: Reason }) {
  return <><Tag tone={outcomeTone(one.outcome)}>{one.word}</Tag><code className="block text-sm break-all text-soft">{one.reason}</code></>;
}

function Examples({ one }: { one: Reason }) {
  return <ul className="space-y-0.5">{one.examples.map((url) => <li key={url}><Link to="/control/explain" search={{ url }} className="inline-block min-h-6 break-all">{url}<span className="sr-only">: explain</span></Link></li>)}</ul>;
}
