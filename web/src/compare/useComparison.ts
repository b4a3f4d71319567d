import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import type { AskedComparison } from "./asked";

export type Comparison = components["schemas"]["Comparison"];

export type LiveComparison = components["schemas"]["LiveComparison"];

/** GET /api/snapshots/{id}/compare-live. Each request fetches a page of another site: it is never repeated by itself. */
export function useLiveComparison({ to, text, live }: AskedComparison) {
  return useQuery({
    queryKey: ["compare-live", to, text],
    enabled: live === true && to !== undefined,
    staleTime: Infinity,
    retry: false,
    queryFn: ({ signal }) => body<LiveComparison>(api.GET("/api/snapshots/{id}/compare-live", { signal, params: { path: { id: to ?? 0 }, query: text ? { mode: text } : {} } })),
  });
}

/** GET /api/changes/compare */
export function useComparison({ to, from, text, live }: AskedComparison) {
  return useQuery({
    queryKey: ["compare", to, from, text],
    enabled: live === undefined && to !== undefined,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => body<Comparison>(api.GET("/api/changes/compare", { signal, params: { query: { toSnapshotId: to ?? 0, ...(from ? { fromSnapshotId: from } : {}), ...(text ? { mode: text } : {}) } } })),
  });
}
