import { expect, test } from "vitest";
import { byDay, readAskedChanges } from "./asked";

test("what cannot be meant is left out", () => {
  expect(readAskedChanges({ source: 7, noise: "hide", page: "0" })).toEqual({});
  expect(readAskedChanges({ source: "hc", noise: "show", page: 3 })).toEqual({ source: "hc", noise: "show", page: 3 });
});

test("days are headings, in the order in which they come", () => {
  const at = ["2026-02-03T10:00:00Z", "2026-02-03T09:00:00Z", "2026-02-01T00:00:00Z"];
  expect(byDay(at, (one) => one)).toEqual([["2026-02-03", at.slice(0, 2)], ["2026-02-01", at.slice(2)]]);
});
