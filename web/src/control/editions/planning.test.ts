import { expect, test } from "vitest";
import { sourcesOfYear, toldOf, whyNot } from "./planning";
import type { Plan } from "./useEditions";

const source = (code: string, change: object = {}) => ({ code, enabled: true, is_yearly: false, ...change });

test("a year is planned for yearly sources, else for all that are enabled", () => {
  const some = [source("a"), source("b", { is_yearly: true }), source("c", { is_yearly: true }), source("d", { enabled: false, is_yearly: true })];
  expect(sourcesOfYear(some)).toEqual(["b", "c"]);
  expect(sourcesOfYear([source("a"), source("d", { enabled: false })])).toEqual(["a"]);
  expect(sourcesOfYear([])).toEqual([]);
});

test("a plan says what became of it, in words", () => {
  const plan = (change: Partial<Plan>): Plan => ({ year: 2027, applied: true, created: 1, errors: 0, entries: [], ...change });
  expect(toldOf(plan({}))).toEqual({ title: "The 2027 edition is planned: its crawl starts on 1 January 2027.", isGood: true });
  expect(toldOf(plan({ created: 0, entries: [{ source: "a", action: "skip", reason: "already_scheduled", notes: [] }] as unknown as Plan["entries"] })).title).toBe("Nothing was planned for 2027: planned already.");
  expect(whyNot("several jobs are its annual job")).toBe("several jobs are its annual job");
});
