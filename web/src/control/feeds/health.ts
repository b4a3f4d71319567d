import type { Tone } from "@/design/Tag";
import type { Feed } from "./useFeeds";
import { t } from "@/language/control/feeds";

const TONES: Record<Feed["state"], Tone> = { new: "plain", ok: "good", troubled: "bad", backlog: "warn", disabled: "plain" };

/** How a feed does, in a word, and how that looks. */
export function stateOf(feed: Pick<Feed, "state">): [string, Tone] {
  return [t(`state.${feed.state}`), TONES[feed.state]];
}

/** What is wrong with a feed, in a sentence; null if nothing is. */
export function troubleOf(feed: Pick<Feed, "trouble" | "errorsInARow">): string | null {
  if (!feed.trouble) return null;
  const trouble = t(`trouble.${feed.trouble}`);
  return feed.errorsInARow > 1 ? t("times", { trouble, count: feed.errorsInARow }) : trouble;
}
