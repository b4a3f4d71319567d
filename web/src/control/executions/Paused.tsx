import { Pause, Play } from "lucide-react";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { duration } from "../charts/format";
import { useJobDeed, type Job } from "../jobs/useJobs";
import { isPaused, waitDeedOf } from "../jobs/words";
import { Moment } from "../live/Moment";
import { useNow } from "../live/useNow";
import { t } from "@/language/control/executions";
import { t as say } from "@/language/control/jobs";
import { withParts } from "@/language/room";

type Run = NonNullable<Job["latest_execution"]>;

/** Since when a run waits, who paused it, and what that means; nothing of one that is not paused. */
export function PausedNotice({ run }: { run: Pick<Run, "status" | "paused_at" | "paused_by"> }) {
  const now = useNow();
  if (!isPaused(run) || run.paused_at === null) return null;
  const lasts = duration(Math.max(0, (now - Date.parse(run.paused_at)) / 1000));
  return (
    <Notice tone="warn" title={withParts(t(run.paused_by ? "pausedBy" : "pausedSince", { name: run.paused_by ?? "", time: lasts }), { since: <Moment at={run.paused_at} /> })}>
      {t("pausedHow")}
    </Notice>
  );
}

/** Lets a run wait, or go on: one button, for lists of runs. */
export function PauseButton({ job }: { job: Job }) {
  const act = useJobDeed();
  const run = job.latest_execution;
  const deed = waitDeedOf(job);
  if (!run || !deed) return null;
  const Icon = deed === "pauseRun" ? Pause : Play;
  return (
    <>
      <Button disabled={act.isPending} onClick={() => act.mutate({ deed, job })}><Icon aria-hidden className="size-4" />{say(`do.${deed}`)}<span className="sr-only">{t("pauseOf", { run: String(run.id), source: job.source_name })}</span></Button>
      {act.error ? <Problem problem={act.error} /> : null}
    </>
  );
}
