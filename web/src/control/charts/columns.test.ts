import { expect, test } from "vitest";
import { alone, aroundTimes, momentLabels, perSecond, sampledRows, shares } from "./columns";

test("counts of a minute as a rate", () => {
  expect(perSecond([120, 0], 60)).toEqual([2, 0]);
});

test("a share of nothing is not known", () => {
  expect(shares([3, 0], [1, 0])).toEqual([0.75, null]);
});

test("a table has all of few rows, and of many so many with the last", () => {
  expect(sampledRows(3, 12)).toEqual([0, 1, 2]);
  const rows = sampledRows(1440, 12);
  expect(rows).toHaveLength(12);
  expect(rows.at(-1)).toBe(1439);
  expect(new Set(rows).size).toBe(12);
});

test("the day stands where it begins, and alone on long axes", () => {
  const at = Date.parse("2026-11-17T23:00:00Z") / 1000;

  expect(momentLabels([at, at + 1800, at + 3600])).toEqual(["23:00\n17 Nov", "23:30", "00:00\n18 Nov"]);
  expect(momentLabels([at, at + 86_400])).toEqual(["17 Nov", "18 Nov"]);
  expect(momentLabels([at, at + 31 * 86_400])).toEqual(["Nov 2026", "Dec 2026"]);
});

test("a run of a minute is drawn in its minutes", () => {
  expect([aroundTimes([600]), aroundTimes([600, 630, 660])]).toEqual([[480, 720], [600, 660]]);
});

test("a value between gaps is a point", () => {
  expect(alone([null, 1, null, 2, 3, null, 4])).toEqual([1, 6]);
});
