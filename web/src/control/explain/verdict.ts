import type { Tone } from "@/design/Tag";
import type { Explanation } from "./useExplanation";

export interface Verdict {
  tone: Tone;
  word: string;
}

/** Say in a word what each station says to the address: where it passes, where it waits, where it ends. */
export function verdicts(found: Explanation): Record<"address" | "scope" | "robots" | "domain" | "outlook", Verdict> {
  const { address, sources, robots, domain, outlook } = found;
  return {
    address: address.refused ? { tone: "bad", word: "never asked for" } : { tone: "good", word: "can be asked for" },
    scope: sources.inScope.length ? { tone: "good", word: "in scope" } : { tone: "bad", word: "in no scope" },
    robots: robots.allowed === null ? { tone: "plain", word: "not known yet" } : robots.allowed ? { tone: "good", word: "allowed" } : robots.ignoredBy.length ? { tone: "warn", word: "forbidden, but ignored" } : { tone: "bad", word: "forbidden" },
    domain: domainVerdict(domain),
    outlook: outlookVerdict(outlook.next.kind),
  };
}

function domainVerdict(domain: Explanation["domain"]): Verdict {
  if (!domain) return { tone: "plain", word: "none" };
  if (!domain.allowed) return { tone: "bad", word: "forbidden by an operator" };
  if (domain.pausedSince) return { tone: "warn", word: "paused" };
  if (domain.circuit === "open") return { tone: "bad", word: "circuit open" };
  if (domain.unreachableSince) return { tone: "bad", word: "unreachable" };
  return domain.known ? { tone: "good", word: "can be asked" } : { tone: "plain", word: "never asked" };
}

function outlookVerdict(kind: Explanation["outlook"]["next"]["kind"]): Verdict {
  const words: Record<typeof kind, Verdict> = {
    under_way: { tone: "accent", word: "under way" },
    queued: { tone: "accent", word: "queued" },
    due: { tone: "accent", word: "due" },
    scheduled: { tone: "good", word: "scheduled" },
    waits: { tone: "warn", word: "waits" },
    never: { tone: "bad", word: "never" },
  };
  return words[kind];
}
