import { expect, test } from "vitest";
import { deedsOf, scheduleOf, warningOf } from "./words";

test("a schedule in words", () => {
  expect(scheduleOf({ interval_minutes: 6, interval_type: "hours", schedule_enabled: true, adaptive_scheduling: false })).toBe("every 6 hours");
  expect(scheduleOf({ interval_minutes: 1, interval_type: "days", schedule_enabled: true, adaptive_scheduling: true })).toBe("every day, less often while nothing changes");
  expect(scheduleOf({ interval_minutes: null, interval_type: "minutes", schedule_enabled: false, adaptive_scheduling: true })).toBe("once");
});

test("only what the state allows is offered", () => {
  expect(deedsOf({ status: "running", schedule_enabled: true, type: "crawl" })).toEqual(["stop", "discard", "cancel"]);
  expect(deedsOf({ status: "completed", schedule_enabled: false, type: "annual" })).toEqual(["delete"]);
  expect(deedsOf({ status: "cancelled", schedule_enabled: false, type: "crawl" })).toEqual(["delete"]);
});

test("to keep and to throw away are warned about in different words", () => {
  const job = { source_name: "Example", latest_execution: { items_crawled: 1200 } as never, schedule_enabled: true };

  expect(warningOf("stop", job)?.text).toContain("the 1,200 pages captured so far are kept");
  expect(warningOf("discard", job)?.text).toContain("are deleted. This cannot be undone.");
  expect(warningOf("discard", job)?.isHarsh).toBe(true);
  expect(warningOf("pause", job)).toBeNull();
});
