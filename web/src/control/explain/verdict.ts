import type { Tone } from "@/design/Tag";
import type { Explanation } from "./useExplanation";
import { t } from "@/language/control/explain";

export interface Verdict {
  tone: Tone;
  word: string;
}

/** Say in a word what each station says to the address: where it passes, where it waits, where it ends. */
export function verdicts(found: Explanation): Record<"address" | "scope" | "robots" | "domain" | "outlook", Verdict> {
  const { address, sources, robots, domain, outlook } = found;
  return {
    address: address.refused ? { tone: "bad", word: t("neverFor") } : { tone: "good", word: t("canFor") },
    scope: sources.inScope.length ? { tone: "good", word: t("inScope") } : { tone: "bad", word: t("noScope") },
    robots: robots.allowed === null ? { tone: "plain", word: t("notKnown") } : robots.allowed ? { tone: "good", word: t("allowed") } : robots.ignoredBy.length ? { tone: "warn", word: t("ignored") } : { tone: "bad", word: t("forbidden") },
    domain: domainVerdict(domain),
    outlook: outlookVerdict(outlook.next.kind),
  };
}

function domainVerdict(domain: Explanation["domain"]): Verdict {
  if (!domain) return { tone: "plain", word: t("none") };
  if (!domain.allowed) return { tone: "bad", word: t("operator") };
  if (domain.pausedSince) return { tone: "warn", word: t("paused") };
  if (domain.circuitOpenUntil) return { tone: "bad", word: t("circuit") };
  if (domain.unreachableSince) return { tone: "bad", word: t("unreachable") };
  return domain.known ? { tone: "good", word: t("canAsk") } : { tone: "plain", word: t("neverAsked") };
}

function outlookVerdict(kind: Explanation["outlook"]["next"]["kind"]): Verdict {
  const words: Record<typeof kind, Verdict> = {
    under_way: { tone: "accent", word: t("underWay") },
    queued: { tone: "accent", word: t("queued") },
    due: { tone: "accent", word: t("due") },
    scheduled: { tone: "good", word: t("scheduled") },
    done: { tone: "good", word: t("done") },
    waits: { tone: "warn", word: t("waits") },
    never: { tone: "bad", word: t("never") },
  };
  return words[kind];
}
