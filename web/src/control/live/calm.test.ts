import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { calmed, gathered } from "./calm";

beforeEach(() => { vi.useFakeTimers(); });
afterEach(() => { vi.useRealTimers(); });

test("the first is done at once, a flood after it once in a while, and the last is not forgotten", () => {
  const run = vi.fn();
  const { ask } = calmed(run, 1000);

  for (let at = 0; at < 50; at++) ask();
  expect(run).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1000);
  expect(run).toHaveBeenCalledTimes(2);
  vi.advanceTimersByTime(5000);
  expect(run).toHaveBeenCalledTimes(2);
  ask();
  expect(run).toHaveBeenCalledTimes(3);
});

test("who has left is not asked for any more", () => {
  const run = vi.fn();
  const { ask, stop } = calmed(run, 1000);

  ask();
  ask();
  stop();
  vi.advanceTimersByTime(5000);

  expect(run).toHaveBeenCalledTimes(1);
});

test("what comes one by one is handed on together, in its order", () => {
  const take = vi.fn();
  const { add } = gathered<number>(take, 250);

  add([1]);
  add([2]);
  add([3, 4]);
  vi.advanceTimersByTime(250);

  expect(take.mock.calls).toEqual([[[1]], [[2, 3, 4]]]);
});
