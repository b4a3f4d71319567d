/** Read the question of an address: every value is text, as it was typed. `?q="ebb and flow"` keeps its quotes, `?q=1e5` its letter. */
export function readSearch(written: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(written));
}

/** Write it: what is undefined is left out. */
export function writeSearch(asked: Record<string, unknown>): string {
  const pairs = Object.entries(asked).flatMap(([name, value]) => (value === undefined || value === null ? [] : [[name, String(value)]]));
  return pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : "";
}
