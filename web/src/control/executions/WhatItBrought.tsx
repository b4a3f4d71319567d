import { Link } from "@tanstack/react-router";
import { buttonClass } from "@/design/Button";
import type { Job } from "../jobs/useJobs";
import { startPageOf } from "../jobs/words";
import { useRunChanges, useStartCapture, type Execution } from "./useExecution";
import { t } from "@/language/control/executions";

/** Where a finished run leads: its start page, its pages in search, what changed, and its package. */
export function WhatItBrought({ run, job }: { run: Execution; job: Job | undefined }) {
  const start = useStartCapture(run.id, job && startPageOf(job));
  const changes = useRunChanges(run.id);
  const day = (moment: string | null) => (moment ? moment.slice(0, 10) : undefined);
  const from = day(run.started_at);
  const to = day(run.completed_at);
  return (
    <nav aria-label={t("brought")} className="flex min-h-10 flex-wrap items-center gap-2">
      {start.data && <Link to="/view/$timestamp" params={{ timestamp: start.data.timestamp }} search={{ url: start.data.url }} className={buttonClass("main")}>{t("openStart")}</Link>}
      {job && run.items_indexed > 0 && <Link to="/search" search={{ source: job.source_code, view: "snapshots", ...(from ? { from } : {}), ...(to ? { to } : {}) }} className={buttonClass()}>{t("searchPages")}</Link>}
      {changes.data && changes.data.total > 0 && <Link to="/control/executions/$id" params={{ id: String(run.id) }} search={{ tab: "result" }} className={buttonClass()}>{t("changesOf", { count: changes.data.total })}</Link>}
    </nav>
  );
}
