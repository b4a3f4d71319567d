import type { ReactNode } from "react";

export type Tone = "plain" | "good" | "warn" | "bad" | "accent";

const TONES: Record<Tone, string> = {
  plain: "bg-sunk text-ink border-line",
  good: "bg-good-wash text-good border-good",
  warn: "bg-warn-wash text-warn border-warn",
  bad: "bg-bad-wash text-bad border-bad",
  accent: "bg-wash text-accent border-accent",
};

/** A word about a state. Colour never stands alone: the word says the same. */
export function Tag({ tone = "plain", children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`inline-block rounded-full border px-2 py-px text-sm whitespace-nowrap ${TONES[tone]}`}>{children}</span>;
}
