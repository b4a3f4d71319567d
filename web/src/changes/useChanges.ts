import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import type { AskedChanges } from "./asked";

export type ChangeEvent = components["schemas"]["ChangeEvent"];
export const PAGE_SIZE = 40;
/** Without any filter the server tells of the latest crawls alone; a feed is of all times. */
const EVER = "1970-01-01";

/** GET /api/changes */
export function useChanges(asked: AskedChanges, pageSize = PAGE_SIZE) {
  return useQuery({
    queryKey: ["changes", asked, pageSize],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => body<components["schemas"]["ChangeList"]>(api.GET("/api/changes", { signal, params: { query: { from: EVER, ...asked, pageSize } } })),
  });
}
