import { expect, test } from "vitest";
import { clock, dayHours, hourClock, stays } from "./day";

const NOW = Date.parse("2026-11-17T22:20:00Z");
const loads = [
  { starts_at: "2026-11-17T22:15:00Z", job_count: 2 },
  { starts_at: "2026-11-18T03:00:00Z", job_count: 5 },
  { starts_at: "2026-11-18T22:15:00Z", job_count: 1 },
];

test("the day begins with the present hour, holds a slot for every quarter, and says which are over", () => {
  const hours = dayHours(loads, [], NOW);
  expect(hours.map((hour) => clock(hour.at))).toEqual([...Array.from({ length: 24 }, (_, place) => hourClock((22 + place) % 24)), "22:00"]);
  expect(hours[0]?.slots.map((slot) => [clock(slot.at), slot.before, slot.isOver])).toEqual([["22:00", 0, true], ["22:15", 2, false], ["22:30", 0, false], ["22:45", 0, false]]);
  expect(hours[5]?.slots.map((slot) => slot.before)).toEqual([5, 0, 0, 0]);
  expect(hours[24]?.slots.map((slot) => slot.before)).toEqual([0, 1, 0, 0]);
});

test("a rebalance moves runs from slot to slot, in UTC, and loses none", () => {
  const moves = [
    { job_id: 1, old_time: "2026-11-18T03:00:00Z", new_time: "2026-11-18T23:45:00Z" },
    { job_id: 2, old_time: "2026-11-18T04:00:00+01:00", new_time: "2026-11-18T00:15:00Z" },
    { job_id: 3, old_time: "2026-11-17T21:00:00Z", new_time: "2026-11-18T00:30:00Z" },
  ];
  const hours = dayHours(loads, moves, NOW);
  expect(hours[5]?.slots[0]).toMatchObject({ before: 5, after: 3 });
  expect(hours[2]?.slots.map((slot) => slot.after)).toEqual([0, 1, 1, 0]);
  expect(hours[0]?.slots[1]).toMatchObject({ before: 2, after: 1 });
  expect(hours.flatMap((hour) => hour.slots).reduce((sum, slot) => sum + slot.after, 0)).toBe(7);
});

test("hours are written with two figures, reasons in words", () => {
  expect([hourClock(0), hourClock(13), clock(Date.parse("2026-11-17T09:45:00Z"))]).toEqual(["00:00", "13:00", "09:45"]);
  expect(stays([{ reason: "runs_once" }, { reason: "job_running" }, { reason: "runs_once" }, { reason: "new_word" }])).toEqual([["runs once, at its own time", 2], ["runs now", 1], ["new word", 1]]);
});
