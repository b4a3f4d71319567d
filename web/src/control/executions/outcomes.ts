import type { Tone } from "@/design/Tag";

const OUTCOMES: Record<string, [string, Tone]> = {
  success: ["captured", "good"],
  failed: ["failed", "bad"],
  blocked_robots: ["kept out by robots.txt", "warn"],
  blocked_4xx: ["refused by the server", "warn"],
  blocked_5xx: ["the server failed", "bad"],
  excluded: ["left out by a rule", "plain"],
  timeout: ["took too long", "bad"],
};

/** An outcome in words, and how it looks. */
export function outcomeOf(outcome: string): [string, Tone] {
  return OUTCOMES[outcome] ?? [outcome.replaceAll("_", " "), "plain"];
}
