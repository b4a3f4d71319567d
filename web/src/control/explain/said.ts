import { spoken } from "@/language/spoken";
import { sentence } from "@/control/page/words";
import { t } from "@/language/control/explain";
import type { Explanation } from "./useExplanation";

/** The server writes English; in other languages a sentence is made of the facts that the record carries beside it. */
function inEnglish(said: string, otherwise: () => string): string {
  return sentence(spoken.language === "en" ? said : otherwise());
}

export function turnSaid(turn: Explanation["outlook"]["next"]): string {
  return inEnglish(turn.sentence, () => {
    const hasPlace = turn.place !== null && (turn.kind === "under_way" || turn.kind === "queued");
    const known = (value: number | string | null) => String(value ?? "–");
    return t(hasPlace ? `turn.${turn.kind as "under_way" | "queued"}.place` : `turn.${turn.kind}`, { place: turn.place ?? 0, run: known(turn.execution), job: known(turn.job), source: known(turn.source) });
  });
}

export function scopesSaid(sources: Explanation["sources"]): string {
  return inEnglish(sources.sentence, () => (sources.inScope.length ? t("scope.some", { sources: sources.inScope.map((one) => one.source).join(", ") }) : t("scope.none")));
}

/** What the rules of one source say; its name stands before it. */
export function scopeSaid(one: Explanation["sources"]["inScope"][number]): string {
  if (spoken.language !== "en") return t(one.inScope === null ? "scopeOne.unknown" : one.inScope ? "scopeOne.in" : "scopeOne.out");
  return one.sentence.startsWith(`${one.source} `) ? one.sentence.slice(one.source.length + 1) : one.sentence;
}

export function robotsSaid(robots: Explanation["robots"]): string {
  return inEnglish(robots.sentence, () => (robots.known === "rules" ? t(robots.allowed === false ? "robots.forbidden" : "robots.allowed") : t(`robots.${robots.known}`)));
}

export function domainSaid(domain: NonNullable<Explanation["domain"]>): string {
  return inEnglish(domain.sentence, () => {
    if (!domain.allowed) return t("domain.forbidden");
    if (domain.pausedSince) return t("domain.paused");
    if (domain.unreachableSince) return t("domain.unreachable");
    if (domain.circuit === "open") return t("domain.circuit", { count: domain.circuitFailures });
    return domain.known ? t("domain.known", { seconds: domain.delayS }) : t("domain.unknown");
  });
}

export function capturesSaid(snapshots: Explanation["snapshots"]): string {
  return inEnglish(snapshots.sentence, () => (snapshots.count ? t("captures", { count: snapshots.count }) : t("captures.none")));
}

export function seenSaid(visibility: Explanation["visibility"]): string {
  return inEnglish(visibility.sentence, () => t(`seen.${visibility.seenBy}`));
}

export function stepSaid(step: Explanation["address"]["steps"][number]): string {
  return inEnglish(step.sentence, () => t(`step.${step.step}`));
}
