import { expect, test } from "vitest";
import { readAskedFeeds } from "./asked";
import { troubleOf } from "./health";
import { undoOf, type Feed } from "./useFeeds";

test("what cannot be meant is left out of the address bar", () => {
  expect(readAskedFeeds({ source: "", kind: "podcast", disabled: true })).toEqual({});
  expect(readAskedFeeds({ source: "ex", kind: "sitemap", disabled: "no" })).toEqual({ source: "ex", kind: "sitemap", disabled: "no" });
});

test("what is wrong is said in words, with how often", () => {
  expect(troubleOf({ trouble: "not_found", errorsInARow: 3 })).toBe("not found at its address (3 times in a row)");
  expect(troubleOf({ trouble: null, errorsInARow: 0 })).toBeNull();
});

test("what was taken away can be put back", () => {
  const feed = { id: 3, source: "ex", url: "https://ex.example/rss", kind: "feed" } as Feed;

  expect(undoOf({ deed: "remove", feed })).toEqual({ deed: "add", source: "ex", url: "https://ex.example/rss", kind: "feed" });
  expect(undoOf({ deed: "disable", feed })).toEqual({ deed: "enable", feed });
  expect(undoOf({ deed: "poll", source: "ex" })).toBeNull();
});
