import { expect, test } from "vitest";
import { countTicks } from "./axis";

test.each([[0, [0, 1]], [1, [0, 1]], [3, [0, 1, 2, 3]], [7, [0, 2, 4, 6, 8]], [1000, [0, 500, 1000]], [1200, [0, 500, 1000, 1500]]])("the axis up to %d is %j", (most, ticks) => {
  expect(countTicks(most)).toEqual(ticks);
});
