/** The spans that can be chosen, in hours. */
export const HOURS = [1, 6, 24, 168, 744, 8784] as const;

/** Read the span that the address bar asks for, in hours; an hour is not said. */
export function readSpan(found: Record<string, unknown>): { hours?: number } {
  const hours = Number(found["hours"]);
  return hours !== 1 && HOURS.some((one) => one === hours) ? { hours } : {};
}
