export const SPANS: readonly [number, string][] = [[1, "the last hour"], [6, "the last 6 hours"], [24, "the last day"], [168, "the last week"], [744, "the last month"], [8784, "the last year"]];

/** Read the span that the address bar asks for, in hours; an hour is not said. */
export function readSpan(found: Record<string, unknown>): { hours?: number } {
  const hours = Number(found["hours"]);
  return hours !== 1 && SPANS.some(([one]) => one === hours) ? { hours } : {};
}
