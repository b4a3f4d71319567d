import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import type { AskedChanges } from "./asked";

export type ChangeEvent = components["schemas"]["ChangeEvent"];
export const PAGE_SIZE = 40;

/** GET /api/changes */
export function useChanges(asked: AskedChanges) {
  return useQuery({
    queryKey: ["changes", asked],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => body<components["schemas"]["ChangeList"]>(api.GET("/api/changes", { signal, params: { query: { ...asked, pageSize: PAGE_SIZE } } })),
  });
}
