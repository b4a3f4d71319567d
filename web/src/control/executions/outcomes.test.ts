import { afterEach, expect, test } from "vitest";
import { loadRooms } from "@/language/room";
import { speakOutside } from "@/language/spoken";
import { endingText, hasOnlyEnded, leftOf, missesOf, outcomeTone, robotsText, ruleText, wordsOf } from "./outcomes";

afterEach(() => { speakOutside("en"); });

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

test("an ending is said by its state and reason", async () => {
  const sentence = "the limit of pages was reached: 5 addresses";
  expect(endingText({ state: "completed", reason: "max_pages", sentence })).toBe(sentence);
  speakOutside("fr");
  await loadRooms();
  expect(endingText({ state: "completed", reason: "max_pages", sentence })).toBe("la limite de pages a été atteinte");
  expect(endingText({ state: "completed", reason: null, sentence })).toBe("tout le périmètre a été demandé, et rien n’a été abrégé");
  expect(endingText({ state: "failed", reason: "unheard_of", sentence })).toBe("elle s’est terminée autrement");
});

test("a rule is said with what it names", () => {
  expect([ruleText("seed", true), ruleText("scope:prefix", true), ruleText("scope:prefix", false)]).toEqual(["it is a seed", "it lies in the directory of a seed", "it lies outside the directories of the seeds"]);
  expect([ruleText("trap:path_depth", false), ruleText("url_refused", false)]).toEqual(["it looks like a trap for crawlers: path too deep", null]);
  expect([robotsText({ allowed: true, line: 3, rule: "Allow: /" }), robotsText({ allowed: true, line: null, rule: null })]).toEqual(["line 3 allows it: Allow: /", null]);
});
