import type { Tone } from "@/design/Tag";
import { t } from "@/language/control/jobs";
import type { Deed, Job } from "./useJobs";

type Run = NonNullable<Job["latest_execution"]>;

const TONES: Record<string, Tone> = { running: "accent", completed: "good", failed: "bad", cancelled: "plain", paused: "warn", stopped: "warn", incomplete: "warn", discarded: "plain", queued: "plain", pending: "plain", scheduled: "plain" };

export function toneOf(state: string | null): Tone {
  return TONES[state ?? ""] ?? "plain";
}

/** How a run stands, or the server's word for how it ended: one that an operator paused is still running for the machine, and not for a reader. */
export function runStateOf(run: Pick<Run, "status" | "paused_at" | "ending">): string {
  return isPaused(run) ? "paused" : run.ending ?? run.status;
}

/** Whether a run waits for an operator; one that was handed back meanwhile is queued, and waits too. */
export function isPaused(run: Pick<Run, "status" | "paused_at"> | null | undefined): boolean {
  return Boolean(run?.paused_at) && (run?.status === "running" || run?.status === "queued");
}

/** Whether a job's run may be let wait or go on, as the server has it: no tool's run and no import, and none that ends. */
export function waitDeedOf(job: Pick<Job, "run_may">): "pauseRun" | "resumeRun" | null {
  return job.run_may === "pause" ? "pauseRun" : job.run_may === "resume" ? "resumeRun" : null;
}

/** What a person may do to a job now, in the order of the buttons. */
export function deedsOf(job: Pick<Job, "status" | "schedule_enabled" | "type" | "run_may"> & { latest_execution?: (Pick<Run, "status" | "paused_at"> & Partial<Pick<Run, "items_failed">>) | null }): Deed[] {
  const wait = waitDeedOf(job);
  const goOn: Deed[] = [...(wait ? [wait] : []), ...(job.latest_execution?.items_failed ? ["recrawl" as const] : [])];
  switch (job.status) {
    case "running": return [...(wait ? [wait] : []), "stop", "discard", "cancel"];
    // Its worker handed the run back: it can go on, or be ended, before the next one has it.
    case "scheduled": return isPaused(job.latest_execution) ? [...(wait ? [wait] : []), "stop", "discard", "cancel"] : [...goOn, "run", "pause", "cancel", "delete"];
    case "pending": return ["cancel", "delete"];
    case "paused": return ["resume", "cancel", "delete"];
    case "failed": return ["retry", "delete"];
    case "completed": return [...goOn, ...(job.type === "crawl" ? ["again" as const] : []), "delete"];
    default: return ["delete"];
  }
}

const STARTS: readonly Deed[] = ["run", "again", "retry"];

/** The deed by which a source is crawled now, given its crawl job: one more where it has none, null where it runs or waits already. */
export function startOf(job: Parameters<typeof deedsOf>[0] | null): Deed | null {
  if (job === null) return "again";
  return job.latest_execution?.status === "queued" ? null : deedsOf(job).find((deed) => STARTS.includes(deed)) ?? null;
}

const OF_A_RUN: readonly Deed[] = ["pauseRun", "resumeRun", "stop", "discard", "retry", "recrawl"];
const OF_A_QUEUED_RUN: readonly Deed[] = ["pause", "cancel"];

/** What the page of a run offers of its job's deeds. One that waits for a worker has nothing to stop: it is taken out of the queue with its job. */
export function runDeedsOf(run: Pick<Run, "status" | "paused_at">): readonly Deed[] {
  return isAhead(run) ? OF_A_QUEUED_RUN : OF_A_RUN;
}

/** Whether a run has yet to begin. */
export function isAhead(run: Pick<Run, "status" | "paused_at">): boolean {
  return run.status === "queued" && !isPaused(run);
}

export interface Warning {
  title: string;
  text: string;
  /** What the button that does it says. */
  word: string;
  isHarsh?: boolean;
}

/** What is asked before a deed that cannot be taken back, each in its own words; null where it can. */
export function warningOf(deed: Deed, job: Pick<Job, "source_name" | "latest_execution" | "schedule_enabled">): Warning | null {
  const values = { source: job.source_name, count: job.latest_execution?.items_crawled ?? 0 };
  switch (deed) {
    case "stop": return { title: t("stop.title", values), word: t("stop.word"), text: job.schedule_enabled ? `${t("stop.text", values)} ${t("stop.again")}` : t("stop.text", values) };
    case "discard": return { title: t("discard.title", values), word: t("discard.word"), isHarsh: true, text: t("discard.text", values) };
    case "cancel": return { title: t("cancel.title", values), word: t("do.cancel"), isHarsh: true, text: t(job.latest_execution?.status === "queued" ? "cancel.queued" : "cancel.running") };
    case "delete": return { title: t("delete.title", values), word: t("delete.word"), isHarsh: true, text: t("delete.text") };
    default: return null;
  }
}

const STATES = ["pending", "scheduled", "running", "paused", "completed", "failed", "cancelled", "queued", "stopped", "incomplete", "discarded"] as const;

/** The state of a job or a run, or how a run ended, in the language of the page. */
export function stateWord(state: string | null): string {
  const known = STATES.find((one) => one === state);
  return known ? t(`state.${known}`) : state ?? "";
}

/** The first page of a job: its own address, or its first seed. */
export function startPageOf({ url, config }: Pick<Job, "url" | "config">): string | undefined {
  const seeds = (config as { seeds?: unknown }).seeds;
  return url ?? (Array.isArray(seeds) && typeof seeds[0] === "string" ? seeds[0] : undefined);
}
