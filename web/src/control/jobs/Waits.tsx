import { Link } from "@tanstack/react-router";
import { Operate } from "@/app/Operate";
import { buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { withParts } from "@/language/room";
import { t } from "@/language/control/waits";
import type { Job } from "./useJobs";
import { isPaused, startPageOf } from "./words";
import { sentence } from "../page/words";
import { readAskedStart } from "../start/asked";

type Run = Pick<NonNullable<Job["latest_execution"]>, "status" | "paused_at" | "waits_for" | "sentence">;
type Planned = Pick<Job, "source_id" | "url" | "config">;

/** Why a queued run has not started, in a few words; null of one that waits for nothing. */
export function waitTitle(run: Run | null | undefined): string | null {
  return run?.waits_for && !isPaused(run) ? t(`title.${run.waits_for}`) : null;
}

/** Why a queued run has not started, and what to do about it. */
export function WaitNotice({ run, job }: { run: Run | null | undefined; job: Planned | undefined }) {
  const title = waitTitle(run);
  if (!run?.waits_for || title === null) return null;
  const isNormal = run.waits_for === "turn" || run.waits_for === "busy" || run.waits_for === "time";
  return <Notice tone={isNormal ? "info" : "warn"} title={title} actions={<NextStep waitsFor={run.waits_for} job={job} />}>{explained(run)}</Notice>;
}

function explained({ waits_for: why, sentence: said }: Run) {
  // The machine, its directory and the moment are in the server's sentence only.
  if (!why || why === "machine" || why === "time") return <span lang="en">{sentence(said ?? "")}</span>;
  return withParts(t(why), { serve: <code>holdfast serve</code>, start: <code>holdfast start-worker</code> });
}

function NextStep({ waitsFor, job }: { waitsFor: Run["waits_for"]; job: Planned | undefined }) {
  if (waitsFor === "contact") return <Operate><Link to="/control/start" search={readAskedStart({ contactFor: job && startPageOf(job) })} className={buttonClass("main")}>{t("do.contact")}</Link></Operate>;
  if (waitsFor === "disk") return <Link to="/control/storage" className={buttonClass()}>{t("do.disk")}</Link>;
  if (waitsFor === "source" && job) return <Link to="/control/sources/$id" params={{ id: String(job.source_id) }} className={buttonClass()}>{t("do.source")}</Link>;
  return null;
}
