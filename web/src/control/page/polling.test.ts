import { expect, test } from "vitest";
import { pollFew } from "./polling";

test("a list is asked for again while it is short; a long one would ask for every piece of it", () => {
  const of = (pieces: number) => ({ state: { data: { pages: Array.from({ length: pieces }) } } });

  expect([pollFew(5000)({ state: {} }), pollFew(5000)(of(1)), pollFew(5000)(of(40)), pollFew(false)(of(1))]).toEqual([5000, 5000, false, false]);
});
