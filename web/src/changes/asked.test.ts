import { expect, test } from "vitest";
import { say } from "@/language/words";
import { byDay, feedOf, readAskedChanges } from "./asked";
import { summaryOf } from "./summary";
import type { ChangeEvent } from "./useChanges";

test("what cannot be meant is left out", () => {
  expect(readAskedChanges({ source: 7, noise: "hide", page: "0", type: "evil", from: "monday" })).toEqual({});
  expect(readAskedChanges({ source: "hc", noise: "show", page: 3, type: "gone", to: "2026-01-02" })).toEqual({ source: "hc", noise: "show", page: 3, type: "gone", to: "2026-01-02" });
});

test("the feed has the filters of the list, and its own moment", () => {
  expect(feedOf({})).toBe("/api/changes/rss");
  expect(feedOf({ source: "a b", type: "gone", noise: "show", from: "2026-01-01", page: 3 })).toBe("/api/changes/rss?source=a+b&type=gone&noise=show");
});

test("days are headings, in the order in which they come", () => {
  const at = ["2026-02-03T10:00:00Z", "2026-02-03T09:00:00Z", "2026-02-01T00:00:00Z"];
  expect(byDay(at, (one) => one)).toEqual([["2026-02-03", at.slice(0, 2)], ["2026-02-01", at.slice(2)]]);
});

test("a change is summed up in the reader's language", () => {
  const change = { changeType: "updated", changedSections: 1, addedSections: 1, removedSections: 0, summary: "2 sections" } as ChangeEvent;
  expect(summaryOf(change, (word, values) => say("en", word, values))).toBe("2 sections changed");
  expect(summaryOf(change, (word, values) => say("fr", word, values))).toBe("2 sections modifiées");
  expect(summaryOf({ ...change, changedSections: null, addedSections: null, removedSections: null }, (word) => say("en", word))).toBe("The text changed");
  expect(summaryOf({ ...change, changeType: "gone" }, (word) => say("fr", word))).toBe("La page a disparu");
  expect(summaryOf({ ...change, changeType: "melted" }, (word) => say("fr", word))).toBe("2 sections");
});
