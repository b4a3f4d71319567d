import { expect, test } from "vitest";
import { readAskedEdition } from "./asked";
import { bandsOf, outcomesOf, outline, reasonsOf } from "./flow";

test("the parts fill the whole on the left, and even a small one is seen on the right", () => {
  const bands = bandsOf([{ outcome: "captured", count: 9990 }, { outcome: "failed", count: 10 }], 200);
  expect(bands.reduce((sum, one) => sum + one.from, 0)).toBeCloseTo(200);
  expect(bands[1]?.height).toBeGreaterThan(5);
  const last = bands[1];
  expect((last?.right ?? 0) + (last?.height ?? 0)).toBeCloseTo(200);
  expect(bandsOf([], 200)).toEqual([]);
  expect(outline(bands[0] ?? never(), 0, 100)).toMatch(/^M0 0C50 0 50 0 100 0V/);
});

function never(): never {
  throw new Error("there is a first band");
}

test("a summary is read as far as it can be", () => {
  expect(outcomesOf({ outcomes: { captured: 3, failed: 0, evil: 9, robots: "x" } })).toEqual([{ outcome: "captured", count: 3 }]);
  expect(outcomesOf({})).toEqual([]);
  expect(reasonsOf({ reasons: [{ outcome: "failed", reason: "http_404", count: 1 }, { outcome: "captured", reason: "ok", count: 5 }, { outcome: "x", reason: 1 }] })).toEqual([{ outcome: "captured", reason: "ok", count: 5 }, { outcome: "failed", reason: "http_404", count: 1 }]);
});

test("what cannot be meant is left out of the address", () => {
  expect(readAskedEdition({ outcome: "lost", reason: 4 })).toEqual({});
  expect(readAskedEdition({ outcome: "failed", reason: "http_404" })).toEqual({ outcome: "failed", reason: "http_404" });
});
