import { expect, test } from "vitest";
import { isDay } from "./day";

test("only days of the calendar are days", () => {
  expect(["2026-11-17", "2024-02-29", "1970-01-01"].map(isDay)).toEqual([true, true, true]);
  expect(["2026-02-30", "2026-13-01", "2026-99-99", "2026-1-1", "", 20261117, null, "2026-11-17T00:00"].map(isDay)).toEqual(Array.from({ length: 8 }, () => false));
});
