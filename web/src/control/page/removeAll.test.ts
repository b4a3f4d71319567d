import { expect, test, vi } from "vitest";
import { removeAll } from "./removeAll";

test("piece after piece goes, each is counted, and the last ends it", async () => {
  const parts = [{ removed: 500, done: false }, { removed: 500, done: false }, { removed: 7, done: true }];
  const told = vi.fn();

  expect(await removeAll(async () => parts.shift() ?? { removed: 0, done: true }, told)).toBe(1007);
  expect(told.mock.calls).toEqual([[500], [1000]]);
});
