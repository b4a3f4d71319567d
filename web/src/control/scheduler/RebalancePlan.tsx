import { Link } from "@tanstack/react-router";
import { counted } from "@/control/charts/format";
import { Moment } from "@/control/live/Moment";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { stays } from "./day";
import type { Rebalance } from "./useScheduler";

/** What a rebalance would do; nothing is changed yet. */
export function RebalancePlan({ plan, before, onApply, onClose }: { plan: Rebalance; before: number | undefined; onApply: () => void; onClose: () => void }) {
  return (
    <Card title="A better day" actions={
      <>
        <Button onClick={onClose}>Close</Button>
        <Button kind="main" disabled={plan.moved.length === 0} onClick={onApply}>Apply…</Button>
      </>
    }>
      {plan.moved.length === 0 && <Notice title="No job has a better place">The day is as even as it can be with these jobs.</Notice>}
      {plan.moved.length > 0 && <p className="mb-3">The score goes from {before?.toFixed(2) ?? "–"} to {plan.new_distribution_score.toFixed(2)}; {counted(plan.moved.length, "job")} would move.</p>}
      <DataTable caption="Jobs that would move" rows={plan.moved} keyOf={(move) => move.job_id} empty={null} columns={[
        { head: "Job", cell: (move) => <Link to="/control/jobs/$id" params={{ id: String(move.job_id) }}>job {move.job_id}</Link> },
        { head: "From", cell: (move) => <Moment at={move.old_time} /> },
        { head: "To", cell: (move) => <Moment at={move.new_time} /> },
      ]} />
      {plan.skipped.length > 0 && <p className="mt-3 text-soft">{counted(plan.skipped.length, "job stays", "jobs stay")}: {stays(plan.skipped).map(([why, count]) => `${why} (${count})`).join("; ")}.</p>}
    </Card>
  );
}
