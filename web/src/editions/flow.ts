export const OUTCOMES = ["captured", "failed", "robots", "excluded", "over_limit", "not_reached"] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface Reason {
  outcome: Outcome;
  reason: string;
  count: number;
}

/** One part of what was meant to be kept, with its place in the picture: from the whole on the left to its own on the right. */
export interface Band {
  outcome: Outcome;
  count: number;
  share: number;
  left: number;
  right: number;
  /** How high it is on the left, where all parts touch, and on the right, where even a small one is seen. */
  from: number;
  height: number;
}

const GAP = 10;
const LEAST = 6;

/** Read the outcomes of a summary; unknown names and values that are not numbers are left out. */
export function outcomesOf(summary: Record<string, unknown>): { outcome: Outcome; count: number }[] {
  const found = summary["outcomes"];
  if (typeof found !== "object" || found === null) return [];
  const counts = found as Record<string, unknown>;
  return OUTCOMES.map((outcome) => ({ outcome, count: Number(counts[outcome]) })).filter((one) => one.count > 0);
}

/** Read the reasons of a summary, the most frequent first. */
export function reasonsOf(summary: Record<string, unknown>): Reason[] {
  const found = summary["reasons"];
  if (!Array.isArray(found)) return [];
  const reasons: Reason[] = [];
  for (const one of found as Record<string, unknown>[]) {
    const outcome = OUTCOMES.find((known) => known === one["outcome"]);
    if (outcome && typeof one["reason"] === "string" && typeof one["count"] === "number") reasons.push({ outcome, reason: one["reason"], count: one["count"] });
  }
  return reasons.sort((one, other) => other.count - one.count);
}

/** Lay the parts out in a picture of this height. */
export function bandsOf(parts: { outcome: Outcome; count: number }[], height: number): Band[] {
  const total = parts.reduce((sum, one) => sum + one.count, 0);
  if (total === 0) return [];
  const room = height - GAP * (parts.length - 1);
  const raised = parts.map((one) => Math.max(LEAST, (one.count / total) * room));
  const scale = room / raised.reduce((sum, one) => sum + one, 0);
  let [left, right] = [0, 0];
  return parts.map((one, at) => {
    const from = (one.count / total) * height;
    const tall = (raised[at] ?? 0) * scale;
    const band: Band = { outcome: one.outcome, count: one.count, share: one.count / total, left, right, from, height: tall };
    left += from;
    right += tall + GAP;
    return band;
  });
}

/** The outline of a band from x to x2: two curves and two sides. */
export function outline(band: Band, x: number, x2: number): string {
  const middle = (x + x2) / 2;
  const round = (value: number) => Math.round(value * 10) / 10;
  const [a, b, c, d] = [band.left, band.left + band.from, band.right, band.right + band.height].map(round);
  return `M${x} ${a}C${middle} ${a} ${middle} ${c} ${x2} ${c}V${d}C${middle} ${d} ${middle} ${b} ${x} ${b}Z`;
}
