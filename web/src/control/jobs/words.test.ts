import { expect, test } from "vitest";
import { t } from "@/language/control/jobs";
import { deedsOf, isAhead, isPaused, runDeedsOf, runStateOf, startOf, toneOf, warningOf } from "./words";

test("only what the state allows is offered", () => {
  expect(deedsOf({ status: "running", schedule_enabled: true, type: "crawl", run_may: "pause" })).toEqual(["pauseRun", "stop", "discard", "cancel"]);
  expect(deedsOf({ status: "completed", schedule_enabled: false, type: "annual", run_may: null })).toEqual(["delete"]);
  expect(deedsOf({ status: "cancelled", schedule_enabled: false, type: "crawl", run_may: null })).toEqual(["delete"]);
});

test("to keep and to throw away are warned about in different words", () => {
  const job = { source_name: "Example", latest_execution: { items_crawled: 1200 } as never, schedule_enabled: true };

  expect(warningOf("stop", job)?.text).toContain("the 1,200 pages captured so far are kept");
  expect(warningOf("discard", job)?.text).toContain("are deleted. This cannot be undone.");
  expect(warningOf("discard", job)?.isHarsh).toBe(true);
  expect(warningOf("pause", job)).toBeNull();
});

test("a run that waits is told apart from a job whose next runs wait", () => {
  const waits = { status: "running", paused_at: "2026-11-15T12:15:03Z", ending: null };

  expect([runStateOf(waits), toneOf(runStateOf(waits))]).toEqual(["paused", "warn"]);
  expect(runStateOf({ ...waits, paused_at: null })).toBe("running");
  expect(deedsOf({ status: "running", schedule_enabled: true, type: "crawl", run_may: "resume", latest_execution: waits })).toEqual(["resumeRun", "stop", "discard", "cancel"]);
  // Handed back by its worker: the job is scheduled again, and its run still waits.
  expect(deedsOf({ status: "scheduled", schedule_enabled: true, type: "crawl", run_may: "resume", latest_execution: { ...waits, status: "queued" } })[0]).toBe("resumeRun");
  expect(deedsOf({ status: "paused", schedule_enabled: true, type: "crawl", run_may: null })[0]).toBe("resume");
  expect([isPaused(null), isPaused({ status: "completed", paused_at: waits.paused_at })]).toEqual([false, false]);
  const deeds = Object.entries(t.en).filter(([key]) => key.startsWith("do.")).map(([, word]) => word);
  expect(new Set(deeds).size).toBe(deeds.length);
});

test("to let a run wait can be taken back, so nothing is asked before", () => {
  const job = { source_name: "Example", latest_execution: null, schedule_enabled: true };

  expect([warningOf("pauseRun", job), warningOf("resumeRun", job)]).toEqual([null, null]);
});

test("what the server would refuse is not offered: a tool's run cannot wait, and one that ends cannot go on", () => {
  const waits = { status: "running", paused_at: "2026-11-15T12:15:03Z" };

  for (const latest_execution of [waits, { ...waits, paused_at: null }]) {
    expect(deedsOf({ status: "running", schedule_enabled: true, type: "crawl", run_may: null, latest_execution })).toEqual(["stop", "discard", "cancel"]);
  }
  expect(deedsOf({ status: "scheduled", schedule_enabled: true, type: "crawl", run_may: null, latest_execution: { ...waits, status: "queued" } })).toEqual(["stop", "discard", "cancel"]);
});

test("a run that waits for a worker can be taken out of the queue from its own page", () => {
  const queued = { status: "queued", paused_at: null };
  const offered = (status: string) => deedsOf({ status, schedule_enabled: true, type: "crawl", run_may: null, latest_execution: queued }).filter((deed) => runDeedsOf(queued).includes(deed));

  expect([offered("pending"), offered("scheduled")]).toEqual([["cancel"], ["pause", "cancel"]]);
  expect(warningOf("cancel", { source_name: "Example", latest_execution: queued as never, schedule_enabled: true })?.text).toContain("taken out of the queue");
  // One that was paused and handed back has begun.
  expect([isAhead(queued), isAhead({ ...queued, paused_at: "2026-11-15T12:15:03Z" }), isAhead({ ...queued, status: "cancelled" })]).toEqual([true, false, false]);
  expect(runDeedsOf({ status: "running", paused_at: null })).not.toContain("cancel");
});

test("a source is crawled now whether or not it has a job, and not twice at once", () => {
  const job = { schedule_enabled: true, type: "crawl", run_may: null } as const;

  expect([startOf(null), startOf({ ...job, status: "scheduled" }), startOf({ ...job, status: "completed" }), startOf({ ...job, status: "failed" })]).toEqual(["again", "run", "again", "retry"]);
  expect([startOf({ ...job, status: "running" }), startOf({ ...job, status: "pending" }), startOf({ ...job, status: "scheduled", latest_execution: { status: "queued", paused_at: null } })]).toEqual([null, null, null]);
});

test("a stopped run is called so, can be resumed, and what failed of a run can be crawled again", () => {
  const stopped = { status: "completed", paused_at: null, ending: "stopped", items_failed: 2 };
  const job = { schedule_enabled: false, type: "crawl", run_may: "resume", latest_execution: stopped } as const;

  expect([runStateOf(stopped), toneOf(runStateOf(stopped))]).toEqual(["stopped", "warn"]);
  expect(deedsOf({ ...job, status: "completed" })).toEqual(["resumeRun", "recrawl", "again", "delete"]);
  expect(deedsOf({ ...job, status: "scheduled" }).slice(0, 3)).toEqual(["resumeRun", "recrawl", "run"]);
  expect(deedsOf({ ...job, run_may: null, status: "completed", latest_execution: { ...stopped, items_failed: 0 } })).toEqual(["again", "delete"]);
});
