export type Unit = "second" | "minute" | "hour" | "day";

/** How far parts of a page lie from it, as a number of the largest unit that fits. */
export function apart(seconds: number): { value: number; unit: Unit } {
  const away = Math.abs(seconds);
  if (away < 90) return { value: Math.round(away), unit: "second" };
  if (away < 5400) return { value: Math.round(away / 60), unit: "minute" };
  if (away < 129_600) return { value: Math.round(away / 3600), unit: "hour" };
  return { value: Math.round(away / 86_400), unit: "day" };
}

/** How far apart the parts of a page lie from each other, the page itself among them. */
export function spread(earliest: number | null, latest: number | null): number {
  return Math.max(latest ?? 0, 0) - Math.min(earliest ?? 0, 0);
}

/** A length of time in the words of a language. */
export function told(seconds: number, language: string): string {
  const { value, unit } = apart(seconds);
  return new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "long" }).format(value);
}
