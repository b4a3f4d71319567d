import { expect, test } from "vitest";
import { ago, bytes, counted, duration, share } from "./format";

test.each([[0, "0 B"], [999, "999 B"], [1000, "1.0 KB"], [1_234_567, "1.2 MB"], [999_600, "1.0 MB"], [345_000_000_000, "345 GB"]])("%d bytes are %s", (value, said) => {
  expect(bytes(value)).toBe(said);
});

test.each([[0, "0 %"], [1, "100 %"], [0.9996, "99.9 %"], [0.123, "12.3 %"], [0.5, "50 %"], [0.005, "0.5 %"]])("a share of %d is %s", (value, said) => {
  expect(share(value)).toBe(said);
});

test.each([[0, "0 s"], [0.42, "0.4 s"], [59.6, "1 min"], [45, "45 s"], [3600, "1 h"], [12_000, "3 h 20 min"], [90_000, "1 d 1 h"], [61, "1 min 1 s"]])("%d seconds are %s", (value, said) => {
  expect(duration(value)).toBe(said);
});

test("moments before and after now", () => {
  expect(ago(0, 90_000)).toBe("1 min 30 s ago");
  expect(ago(3_600_000, 0)).toBe("in 1 h");
  expect(ago(0, 1000)).toBe("now");
});

test("one is not many", () => {
  expect(counted(1, "page")).toBe("1 page");
  expect(counted(1200, "page")).toBe("1,200 pages");
});
