import { expect, test } from "vitest";
import { clock, daySlots, stays } from "./day";

const hours = Array.from({ length: 24 }, (_, hour) => ({ hour, job_count: hour === 3 ? 5 : 0 }));

test("the day begins with the present hour and holds every hour once", () => {
  const slots = daySlots(hours, [], 22);
  expect(slots.map((slot) => slot.hour).slice(0, 4)).toEqual([22, 23, 0, 1]);
  expect(new Set(slots.map((slot) => slot.hour)).size).toBe(24);
  expect(slots.find((slot) => slot.hour === 3)).toEqual({ hour: 3, before: 5, after: 5 });
});

test("a rebalance moves runs from hour to hour, in UTC, and loses none", () => {
  const moves = [
    { job_id: 1, old_time: "2026-11-17T03:00:00Z", new_time: "2026-11-17T23:45:00Z" },
    { job_id: 2, old_time: "2026-11-17T04:30:00+01:00", new_time: "2026-11-18T00:15:00Z" },
  ];
  const slots = daySlots(hours, moves, 0);
  expect([slots[3]?.after, slots[23]?.after, slots[0]?.after]).toEqual([3, 1, 1]);
  expect(slots.reduce((sum, slot) => sum + slot.after, 0)).toBe(5);
});

test("hours are written with two figures, reasons in words", () => {
  expect([clock(0), clock(13)]).toEqual(["00:00", "13:00"]);
  expect(stays([{ reason: "runs_once" }, { reason: "job_running" }, { reason: "runs_once" }, { reason: "new_word" }])).toEqual([["runs once, at its own time", 2], ["runs now", 1], ["new word", 1]]);
});
