import { among, text, tidy } from "@/control/page/asked";

export const STATES = ["forbidden", "paused", "unreachable", "active"] as const;
export const ORDERS = ["domain", "page_count", "crawl_delay", "created_at"] as const;

export interface AskedDomains {
  state?: (typeof STATES)[number];
  sortBy?: (typeof ORDERS)[number];
}

/** Read the address bar; a state is looked for by name or age only, as the server does. */
export function readAskedDomains(found: Record<string, unknown>): AskedDomains {
  const state = among(found["state"], STATES);
  const sortBy = among(found["sortBy"], ORDERS);
  const isSorted = sortBy && sortBy !== "domain" && !(state && sortBy !== "created_at");
  return tidy({ state, sortBy: isSorted ? sortBy : undefined });
}

/** The address about which robots.txt is asked. */
export function readAskedRobots(found: Record<string, unknown>): { url?: string } {
  return tidy({ url: text(found["url"]) });
}
