import { expect, test } from "vitest";
import { bytes, counted, lasting, plain } from "./amounts";

test("bytes have two figures at least and never a thousand of a unit", () => {
  expect([0, 999, 1000, 1_500_000, 999_600_000, 123_456_789_000].map(bytes)).toEqual(["0 B", "999 B", "1.0 kB", "1.5 MB", "1.0 GB", "123 GB"]);
});

test("times are told in two parts", () => {
  expect([0, 59.4, 60, 61, 3600, 3661, 172_800, 190_000].map(lasting)).toEqual(["0 s", "59 s", "1 min", "1 min 1 s", "1 h", "1 h 1 min", "2 d", "2 d 4 h"]);
});

test("one is one", () => {
  expect([counted(1, "page"), counted(0, "page"), counted(12000, "address", "addresses"), plain("blocked_robots")]).toEqual(["1 page", "0 pages", "12,000 addresses", "blocked robots"]);
});
