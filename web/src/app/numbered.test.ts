import { expect, test } from "vitest";
import { isNumber } from "./numbered";

test("only a number of a row is one", () => {
  expect(["1", "907"].map(isNumber)).toEqual([true, true]);
  for (const none of ["", "0", "-1", "abc", "1.5", "1e3", "٣", " 1", "1".repeat(16)]) expect(isNumber(none)).toBe(false);
});
