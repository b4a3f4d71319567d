import type { Tone } from "@/design/Tag";

const OUTCOMES: Record<string, [string, Tone]> = {
  success: ["captured", "good"],
  failed: ["failed", "bad"],
  blocked_robots: ["kept out by robots.txt", "warn"],
  blocked_4xx: ["refused by the server", "warn"],
  blocked_5xx: ["the server failed", "bad"],
  excluded: ["left out by a rule", "plain"],
  timeout: ["took too long", "bad"],
  left: ["not got to when it ended", "warn"],
};

/** An outcome in words, and how it looks. */
export function outcomeOf(outcome: string): [string, Tone] {
  return OUTCOMES[outcome] ?? [outcome.replaceAll("_", " "), "plain"];
}

interface Told {
  outcomes: Record<string, number>;
  reasons: { outcome: string; reason: string; count: number }[];
}

/** How many addresses a run had not got to when it was stopped or came to a limit; the server closes them as left out. */
export function leftOf(report: Told): number {
  return report.reasons.filter((one) => isLeft(one)).reduce((sum, one) => sum + one.count, 0);
}

/** Whether a run had not got to an address when it ended. */
export function isLeft({ outcome, reason }: { outcome: string; reason: string }): boolean {
  return outcome === "excluded" && (reason === "stopped" || reason === "cancelled" || reason.startsWith("over_limit:"));
}

/** The outcomes of a run, the most frequent first; what it did not get to stands apart from what a rule left out. */
export function outcomesOf(report: Told): [string, number][] {
  const left = leftOf(report);
  const all = { ...report.outcomes, excluded: (report.outcomes["excluded"] ?? 0) - left, left };
  return Object.entries(all).filter(([, number]) => number > 0).sort(([, a], [, b]) => b - a);
}
