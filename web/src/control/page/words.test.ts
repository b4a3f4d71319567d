import { expect, test } from "vitest";
import { plain, sentence } from "./words";

test("machines' words become people's", () => {
  expect([plain("blocked_robots"), sentence("it has no schedule"), sentence("Done."), sentence("")]).toEqual(["blocked robots", "It has no schedule.", "Done.", ""]);
});
