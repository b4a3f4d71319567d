import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";

export type PageHistory = components["schemas"]["History"];
/** Answers that are read for one year: with 500 captures each, more than a list on a screen is good for. */
const PIECES = 4;

async function read(url: string, year: number | undefined, signal: AbortSignal): Promise<PageHistory> {
  const ask = (cursor: string | null) => body<PageHistory>(api.GET("/api/history", { signal, params: { query: { url, ...(year ? { year } : {}), ...(cursor ? { cursor } : {}) } } }));
  const whole = await ask(null);
  for (let piece = 1; whole.next && piece < PIECES; piece++) {
    const more = await ask(whole.next);
    whole.items.push(...more.items);
    whole.next = more.next;
  }
  return whole;
}

/** GET /api/history: one year of a page, the latest if none is named. Another year of it takes the place of the last without a jump; another page is another page. */
export function useHistory(url: string | undefined, year?: number) {
  return useQuery({ ...asking(url ?? "", year), enabled: url !== undefined, placeholderData: (before, query) => (query?.queryKey[1] === url ? before : undefined) });
}

/** Ask for a year as soon as the pointer or the focus is on it: it is there when it is chosen. */
export function useYearAhead(url: string | undefined) {
  const queries = useQueryClient();
  return (year: number) => { if (url !== undefined) void queries.prefetchQuery(asking(url, year)); };
}

function asking(url: string, year: number | undefined) {
  return queryOptions({ queryKey: ["history", url, year], queryFn: ({ signal }) => read(url, year, signal) });
}
