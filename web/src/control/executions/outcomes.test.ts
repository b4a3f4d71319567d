import { expect, test } from "vitest";
import { hasOnlyEnded, leftOf, missesOf, outcomeTone, wordsOf } from "./outcomes";

const reason = (outcome: string, reason: string, word: string, count: number) => ({ outcome, reason, word, count, examples: [] });
const REASONS = [reason("success", "ok", "captured", 9), reason("success", "ambiguous_length", "captured", 1), reason("excluded", "exclude:/x", "excluded by a rule", 3), reason("excluded", "stopped", "not crawled: the run ended first", 20), reason("excluded", "over_limit:max_pages", "not crawled: the run ended first", 5), reason("blocked_4xx", "http_404", "not found", 2), reason("open", "-", "queued", 4)];

test("what a run did not get to is neither done nor left out by a rule", () => {
  expect(leftOf(REASONS)).toBe(25);
});

test("words of endings add up to all that have ended", () => {
  expect(wordsOf(REASONS).map(({ word, count }) => [word, count])).toEqual([["not crawled: the run ended first", 25], ["captured", 10], ["excluded by a rule", 3], ["not found", 2]]);
});

test("errors come before what rules left out", () => {
  expect(missesOf(REASONS).map(({ reason: why }) => why)).toEqual(["http_404", "stopped", "over_limit:max_pages", "exclude:/x"]);
});

test("an outcome that is not known looks bad, an open one does not", () => {
  expect([outcomeTone("timeout"), outcomeTone("blocked_5xx"), outcomeTone(null), outcomeTone("success")]).toEqual(["bad", "bad", "accent", "good"]);
});

test("a host of an ended run is not ready, a broken one stays broken", () => {
  expect([hasOnlyEnded("ready", false), hasOnlyEnded("ready", true), hasOnlyEnded("unreachable", false)]).toEqual([true, false, false]);
});
