import { spokenDate } from "@/language/spoken";

/** One line of a chart: a value for each moment, null where nothing is known. */
export interface Line {
  label: string;
  values: (number | null)[];
  tone?: "accent" | "good" | "warn" | "bad" | "ink";
}

/** Lines are told apart by their dashes too: colour never stands alone. */
export const DASHES: readonly (readonly number[])[] = [[], [8, 4], [2, 3], [10, 3, 2, 3], [14, 4]];

/** Return counts of steps as a rate a second. */
export function perSecond(counts: readonly number[], stepSeconds: number): number[] {
  return counts.map((count) => count / stepSeconds);
}

/** Return the share of a part in each step; null where there was nothing. */
export function shares(part: readonly number[], rest: readonly number[]): (number | null)[] {
  return part.map((value, at) => {
    const all = value + (rest[at] ?? 0);
    return all === 0 ? null : value / all;
  });
}

const MINUTE_S = 60;

/** Return from when to when an axis of time goes: of a single moment, minutes around it; uPlot would make years of it. */
export function aroundTimes(times: ArrayLike<number>): [number, number] {
  const first = times[0] ?? 0;
  const last = times[times.length - 1] ?? 0;
  return first < last ? [first, last] : [first - 2 * MINUTE_S, first + 2 * MINUTE_S];
}

/** Return which values stand alone: a line has no length there, and they are shown as points. */
export function alone(values: readonly (number | null)[]): number[] {
  const is = (at: number) => values[at] !== null && values[at] !== undefined;
  return values.flatMap((_, at) => (is(at) && !is(at - 1) && !is(at + 1) ? [at] : []));
}

/** Return at most so many rows, evenly taken and always with the last: what a table beside a chart shows. */
export function sampledRows(length: number, most: number): number[] {
  if (length <= most) return Array.from({ length }, (_, at) => at);
  return Array.from({ length: most }, (_, at) => Math.round(((at + 1) * length) / most) - 1);
}

const LABELS = {
  time: { hour: "2-digit", minute: "2-digit", timeZone: "UTC" },
  day: { day: "numeric", month: "short", timeZone: "UTC" },
  month: { month: "short", year: "numeric", timeZone: "UTC" },
} as const;

/** Return what stands under the ticks of a time axis: the time, and the day where it is another; days or months alone on long axes. */
export function momentLabels(ticks: readonly number[]): string[] {
  const step = (ticks[1] ?? 0) - (ticks[0] ?? 0);
  let shown = "";
  return ticks.map((tick) => {
    const moment = new Date(tick * 1000);
    if (step >= 28 * 86_400) return spokenDate(moment, LABELS.month);
    const day = spokenDate(moment, LABELS.day);
    if (step >= 86_400) return day;
    const isNew = day !== shown;
    shown = day;
    return isNew ? `${spokenDate(moment, LABELS.time)}\n${day}` : spokenDate(moment, LABELS.time);
  });
}
