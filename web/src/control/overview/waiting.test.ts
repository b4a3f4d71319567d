import { expect, test } from "vitest";
import type { Host } from "./useOverview";
import { whyItWaits } from "./waiting";

const NOW = Date.parse("2026-11-15T12:00:00Z");
const host = (changes: Partial<Host>): Host => ({
  domain: "ex.example", state: "ready", pending: 3, completed: 0, failed: 0, ruledOut: 0, dueAt: null, nextAllowedAt: null, crawlDelay: null,
  circuit: "closed", circuitFailures: 0, slowDown: 1, pausedAt: null, unreachableSince: null, ...changes,
});

test.each<[string, Partial<Host>, string | null]>([
  ["one that may be asked waits for nothing", {}, null],
  ["one that is asked waits for nothing", { state: "active", nextAllowedAt: "2026-11-15T12:05:00Z" }, null],
  ["a pause", { state: "paused" }, "An operator paused it."],
  ["an open circuit", { circuit: "open", circuitFailures: 5, nextAllowedAt: "2026-11-15T12:01:30Z" }, "Its circuit is open after 5 failures in a row; next request in 1 min 30 s."],
  ["a server that slows us down", { slowDown: 4, nextAllowedAt: "2026-11-15T12:00:20Z" }, "Its server asked us to slow down (4 times the delay); next request in 20 s."],
  ["the usual delay", { state: "resting", nextAllowedAt: "2026-11-15T12:00:05Z" }, "Its delay has not passed; next request in 5 s."],
  ["tries that come later", { dueAt: "2026-11-15T12:10:00Z" }, "Its queued addresses are tried later; next request in 10 min."],
  ["no answer", { state: "unreachable", unreachableSince: "2026-11-15T11:00:00Z" }, "It does not answer (since 1 h ago); next request soon."],
])("%s", (_, changes, said) => {
  expect(whyItWaits(host(changes), NOW)).toBe(said);
});
