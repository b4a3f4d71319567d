import { expect, test } from "vitest";
import { barsOf, nextBar } from "./spans";

test("units without a capture have a bar of their own", () => {
  const bars = barsOf([{ start: "2024-11-01", count: 2 }, { start: "2025-02-01", count: 5 }], "month");
  expect(bars.map((bar) => [bar.start, bar.end, bar.count])).toEqual([
    ["2024-11-01", "2024-11-30", 2], ["2024-12-01", "2024-12-31", 0], ["2025-01-01", "2025-01-31", 0], ["2025-02-01", "2025-02-28", 5],
  ]);
});

test("a span that no screen has room for ends somewhere, and an unknown unit has no bars", () => {
  expect(barsOf([{ start: "1000-01-01", count: 1 }, { start: "9999-01-01", count: 1 }], "day").length).toBe(400);
  expect(barsOf([{ start: "2024-01-01", count: 1 }], "fortnight")).toEqual([]);
  expect(barsOf([], "day")).toEqual([]);
});

test("arrows go from bar to bar and stay among them", () => {
  expect([nextBar("ArrowRight", 0, 3), nextBar("ArrowRight", 2, 3), nextBar("ArrowLeft", 0, 3), nextBar("Home", 2, 3), nextBar("End", 0, 3), nextBar("x", 0, 3)]).toEqual([1, 2, 0, 0, 2, null]);
});
