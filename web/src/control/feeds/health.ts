import type { Tone } from "@/design/Tag";
import type { Feed } from "./useFeeds";

const STATES: Record<Feed["state"], [string, Tone]> = { new: ["not polled yet", "plain"], ok: ["well", "good"], troubled: ["troubled", "bad"], backlog: ["behind", "warn"], disabled: ["disabled", "plain"] };
const TROUBLES: Record<NonNullable<Feed["trouble"]>, string> = {
  rate_limited: "its server asks us to come less often",
  forbidden: "its server refuses us",
  not_found: "there is nothing at its address",
  gone: "its server says that it is gone for good",
  upstream_failure: "its server fails",
  network: "it cannot be reached",
  parse_error: "what it answers is no feed",
  unexpected: "it answers what nobody expected",
  by_hand: "disabled by an operator",
  backlog: "it names more than is captured in time",
};

/** How a feed does, in a word, and how that looks. */
export function stateOf(feed: Pick<Feed, "state">): [string, Tone] {
  return STATES[feed.state];
}

/** What is wrong with a feed, in a sentence; null if nothing is. */
export function troubleOf(feed: Pick<Feed, "trouble" | "errorsInARow">): string | null {
  if (!feed.trouble) return null;
  const times = feed.errorsInARow > 1 ? ` (${feed.errorsInARow} times in a row)` : "";
  return `${TROUBLES[feed.trouble]}${times}`;
}
