import { Link } from "@tanstack/react-router";
import { Moment } from "@/control/live/Moment";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { stays } from "./day";
import type { Rebalance } from "./useScheduler";
import { t } from "@/language/control/scheduler";

/** What a rebalance would do; nothing is changed yet. */
export function RebalancePlan({ plan, before, onApply, onClose }: { plan: Rebalance; before: number | undefined; onApply: () => void; onClose: () => void }) {
  return (
    <Card title={t("better")} actions={
      <>
        <Button onClick={onClose}>{t("close")}</Button>
        <Button kind="main" disabled={plan.moved.length === 0} onClick={onApply}>{t("applyIt")}</Button>
      </>
    }>
      {plan.moved.length === 0 && <Notice title={t("noBetter")}>{t("noBetterHow")}</Notice>}
      {plan.moved.length > 0 && <p className="mb-3">{t("scores", { before: before?.toFixed(2) ?? "–", after: plan.new_distribution_score.toFixed(2), count: plan.moved.length })}</p>}
      <DataTable caption={t("moveCaption")} rows={plan.moved} keyOf={(move) => move.job_id} empty={null} columns={[
        { head: t("job"), cell: (move) => <Link to="/control/jobs/$id" params={{ id: String(move.job_id) }}>{t("jobName", { id: String(move.job_id) })}</Link> },
        { head: t("from"), cell: (move) => <Moment at={move.old_time} /> },
        { head: t("to"), cell: (move) => <Moment at={move.new_time} /> },
      ]} />
      {plan.skipped.length > 0 && <p className="mt-3 text-soft">{t("stays", { count: plan.skipped.length, reasons: stays(plan.skipped).map(([why, count]) => `${why} (${count})`).join("; ") })}</p>}
    </Card>
  );
}
