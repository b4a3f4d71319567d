import { spoken, spokenDate } from "@/language/spoken";
import { ruleText } from "@/control/executions/outcomes";
import { sentence } from "@/control/page/words";
import { t } from "@/language/control/explain";
import type { Explanation } from "./useExplanation";

/** The server writes English; in other languages a sentence is made of the facts that the record carries beside it. */
function inEnglish(said: string, otherwise: () => string): string {
  return sentence(spoken.language === "en" ? said : otherwise());
}

type Turn = Explanation["outlook"]["next"];

/** The facts that the sentence about a turn needs. What waits or never comes has its reason in the server's words only. */
const TURN_FACTS = { under_way: ["execution"], queued: ["execution"], due: ["job", "source"], scheduled: ["source"], done: ["execution", "source"] } as const satisfies Record<Exclude<Turn["kind"], "waits" | "never">, readonly (keyof Turn)[]>;

/** Say what happens next; null where only the server's own sentence says it all. */
export function turnSaid(turn: Turn): string | null {
  if (spoken.language === "en") return sentence(turn.sentence);
  const { kind, place } = turn;
  if (kind === "waits" || kind === "never" || TURN_FACTS[kind].some((fact) => turn[fact] === null)) return null;
  const hasPlace = place !== null && (kind === "under_way" || kind === "queued");
  return sentence(t(hasPlace ? `turn.${kind}.place` : `turn.${kind}`, { place: place ?? 0, run: String(turn.execution), job: String(turn.job), source: String(turn.source) }));
}

export function scopesSaid(sources: Explanation["sources"]): string {
  return inEnglish(sources.sentence, () => (sources.inScope.length ? t("scope.some", { sources: sources.inScope.map((one) => one.source).join(", ") }) : t("scope.none")));
}

/** What the rules of one source say; its name stands before it. */
export function scopeSaid(one: Explanation["sources"]["inScope"][number]): string {
  if (spoken.language !== "en") {
    const why = one.rule && one.inScope !== null ? ruleText(one.rule, one.inScope) : null;
    return `${t(one.inScope === null ? "scopeOne.unknown" : one.inScope ? "scopeOne.in" : "scopeOne.out")}${why ? `\u00a0: ${why}` : ""}`;
  }
  return one.sentence.startsWith(`${one.source} `) ? one.sentence.slice(one.source.length + 1) : one.sentence;
}

export function robotsSaid(robots: Explanation["robots"]): string {
  return inEnglish(robots.sentence, () => {
    if (robots.origin === null) return t("robots.none");
    const said = robots.known === "rules" ? t(robots.allowed === false ? "robots.forbidden" : "robots.allowed") : t(`robots.${robots.known}`);
    if (robots.allowed === true || robots.ignoredBy.length === 0) return said;
    return t("robots.ignoredBy", { said, sources: robots.ignoredBy.join(", ") });
  });
}

export function domainSaid(domain: NonNullable<Explanation["domain"]>): string {
  return inEnglish(domain.sentence, () => {
    if (!domain.allowed) return t("domain.forbidden");
    if (!domain.known) return t("domain.unknown");
    const parts = [t("domain.known", { seconds: domain.delayS })];
    if (domain.pausedSince) parts.unshift(t("domain.paused"));
    // The row says "open" until the next request, also when the time of its circuit is over.
    if (domain.circuitOpenUntil) parts.push(t("domain.circuit", { count: domain.circuitFailures, time: spokenDate(domain.circuitOpenUntil, { timeStyle: "medium", timeZone: "UTC" }) }));
    else if (domain.circuit !== "closed") parts.push(t("domain.retried"));
    if (domain.unreachableSince) parts.push(t("domain.unreachable"));
    return parts.join(" ");
  });
}

export function capturesSaid(snapshots: Explanation["snapshots"]): string {
  return inEnglish(snapshots.sentence, () => (snapshots.count ? t(snapshots.isExact ? "captures" : "captures.more", { count: snapshots.count }) : t("captures.none")));
}

export function seenSaid(visibility: Explanation["visibility"]): string {
  return inEnglish(visibility.sentence, () => t(`seen.${visibility.seenBy}`));
}

export function stepSaid(step: Explanation["address"]["steps"][number]): string {
  return inEnglish(step.sentence, () => t(`step.${step.step}`));
}
