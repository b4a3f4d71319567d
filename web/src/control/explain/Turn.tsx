import { sentence } from "@/control/page/words";
import { turnSaid } from "./said";
import type { Explanation } from "./useExplanation";

/** What happens next, in the server's English where the language of the page has no sentence that says as much. */
export function Turn({ turn }: { turn: Explanation["outlook"]["next"] }) {
  return turnSaid(turn) ?? <span lang="en">{sentence(turn.sentence)}</span>;
}
