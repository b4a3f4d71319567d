import { Pause, Play } from "lucide-react";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { duration } from "../charts/format";
import { useJobDeed, type Job } from "../jobs/useJobs";
import { DEED_WORDS, isPaused, waitDeedOf } from "../jobs/words";
import { Moment } from "../live/Moment";
import { useNow } from "../live/useNow";

type Run = NonNullable<Job["latest_execution"]>;

/** Since when a run waits, who paused it, and what that means; nothing of one that is not paused. */
export function PausedNotice({ run }: { run: Pick<Run, "status" | "paused_at" | "paused_by"> }) {
  const now = useNow();
  if (!isPaused(run) || run.paused_at === null) return null;
  const lasts = duration(Math.max(0, (now - Date.parse(run.paused_at)) / 1000));
  return (
    <Notice tone="warn" title={<>Paused since <Moment at={run.paused_at} />{run.paused_by ? ` by ${run.paused_by}` : ""}, for {lasts}.</>}>
      Pages under way are finished and kept; nothing more is asked of the sites until you resume. A time limit of the run stands still meanwhile.
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
      <Button disabled={act.isPending} onClick={() => act.mutate({ deed, job })}><Icon aria-hidden className="size-4" />{DEED_WORDS[deed]}<span className="sr-only"> #{run.id} of {job.source_name}</span></Button>
      {act.error ? <Problem problem={act.error} /> : null}
    </>
  );
}
