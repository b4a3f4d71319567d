import { expect, test } from "vitest";
import { plain, sentence } from "./words";

test("machines' words become people's", () => {
  expect([plain("blocked_robots"), sentence("it has no schedule"), sentence("Done."), sentence(""), sentence("robots.txt allows it"), sentence("www.a.example/x is asked")]).toEqual(["blocked robots", "It has no schedule.", "Done.", "", "robots.txt allows it.", "www.a.example/x is asked."]);
});
