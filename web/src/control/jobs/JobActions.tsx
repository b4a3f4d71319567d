import { Link } from "@tanstack/react-router";
import { CircleStop, Pause, Play, RotateCcw, Trash2, X } from "lucide-react";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { useMay } from "@/app/useSession";
import { Button, buttonClass } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { Notice } from "@/design/Notice";
import { useJobDeed, type Deed, type Job, type Wish } from "./useJobs";
import { deedsOf, warningOf } from "./words";
import { t } from "@/language/control/jobs";

const ICONS: Record<Deed, typeof Play> = { run: Play, again: Play, pause: Pause, resume: Play, pauseRun: Pause, resumeRun: Play, retry: RotateCcw, recrawl: RotateCcw, stop: CircleStop, discard: Trash2, cancel: X, delete: Trash2 };
const HARSH: readonly Deed[] = ["discard", "cancel", "delete"];

/** What can be done to a job now. What cannot be taken back is asked for once more, in its own words; what was done is said. */
export function JobActions({ job, only, onDone }: { job: Job; only?: readonly Deed[]; onDone?: (deed: Deed) => void }) {
  const [asked, ask] = useState<Wish | null>(null);
  const act = useJobDeed();
  const mayOperate = useMay("operate");
  const deeds = !mayOperate ? [] : deedsOf(job).filter((deed) => !only || only.includes(deed));
  const warning = asked && warningOf(asked.deed, asked.job);
  function start(deed: Deed) {
    if (warningOf(deed, job)) ask({ deed, job });
    else perform({ deed, job });
  }
  function perform(wish: Wish) {
    ask(null);
    act.mutate(wish, { onSuccess: () => onDone?.(wish.deed) });
  }
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap gap-2">
        {deeds.map((deed) => {
          const Icon = ICONS[deed];
          return <Button key={deed} kind={HARSH.includes(deed) ? "danger" : deed === "run" || deed === "again" || deed === "resume" || deed === "resumeRun" || deed === "retry" ? "main" : "plain"} disabled={act.isPending} onClick={() => start(deed)}><Icon aria-hidden className="size-4" />{t(`do.${deed}`)}</Button>;
        })}
      </div>
      {act.isSuccess && <Notice tone="good" title={act.data.said} actions={act.data.job && <Link to="/control/jobs/$id" params={{ id: String(act.data.job) }} className={buttonClass()}>{t("watch")}</Link>} />}
      {act.error ? <Problem problem={act.error} /> : null}
      <Dialog isOpen={warning !== null} onClose={() => ask(null)} title={warning?.title ?? ""} actions={
        <>
          <Button onClick={() => ask(null)}>{t("cancel")}</Button>
          {asked && warning && <Button kind={warning.isHarsh ? "danger" : "main"} onClick={() => perform(asked)}>{warning.word}</Button>}
        </>
      }>
        <p>{warning?.text}</p>
      </Dialog>
    </div>
  );
}
