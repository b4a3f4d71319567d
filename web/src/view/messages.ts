/** What the script in a replayed page tells: which capture is shown, or where a link leads that was clicked. */
export interface Told {
  what: "shown" | "go";
  url: string;
  digits: string;
}

/**
 * Read a message of the frame; null for anything else. A replayed page stands in a sandbox without an origin, so the
 * browser says `null` for it: what counts is that the very window of our frame sent it. And still nothing of it is
 * believed: the viewer only goes where the page says, and shows what the archive has there.
 */
export function readTold(event: { source: unknown; origin: string; data: unknown }, frame: unknown): Told | null {
  if (!frame || event.source !== frame || event.origin !== "null") return null;
  if (typeof event.data !== "object" || event.data === null) return null;
  const { holdfast, url, digits } = event.data as Record<string, unknown>;
  if (holdfast !== "shown" && holdfast !== "go") return null;
  if (typeof url !== "string" || url.length > 8192 || !/^https?:\/\//i.test(url)) return null;
  if (typeof digits !== "string" || !/^\d{1,14}$/.test(digits)) return null;
  return { what: holdfast, url, digits };
}

/** Whether two addresses are the same to a reader: a fragment and a slash at the end make no difference. */
export function isSameAddress(one: string, other: string): boolean {
  const bare = (url: string) => url.split("#")[0]?.replace(/\/$/, "");
  return bare(one) === bare(other);
}

/** Whether two hosts belong to one site, as far as their names tell: the last two parts of a name are those of its owner. */
export function isOfOneSite(one: string, other: string): boolean {
  if (one === other) return true;
  const owner = (host: string) => (/^[\d.]+$|:|\]$/.test(host) ? host : host.split(".").slice(-2).join("."));
  return owner(one).includes(".") && !owner(one).endsWith(".localhost") && owner(one) === owner(other);
}
