export interface AskedFeeds {
  source?: string;
  kind?: "feed" | "sitemap";
  disabled?: "yes" | "no";
  cursor?: string;
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedFeeds(found: Record<string, unknown>): AskedFeeds {
  const { source, kind, disabled, cursor } = found;
  return {
    ...(typeof source === "string" && source ? { source } : {}),
    ...(kind === "feed" || kind === "sitemap" ? { kind } : {}),
    ...(disabled === "yes" || disabled === "no" ? { disabled } : {}),
    ...(typeof cursor === "string" && cursor ? { cursor } : {}),
  };
}
