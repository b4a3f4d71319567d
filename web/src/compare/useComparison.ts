import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import type { AskedComparison } from "./asked";

export type Comparison = components["schemas"]["Comparison"];

/** GET /api/changes/compare */
export function useComparison({ to, from, text }: AskedComparison) {
  return useQuery({
    queryKey: ["compare", to, from, text],
    enabled: to !== undefined,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => body<Comparison>(api.GET("/api/changes/compare", { signal, params: { query: { toSnapshotId: to ?? 0, ...(from ? { fromSnapshotId: from } : {}), ...(text ? { mode: text } : {}) } } })),
  });
}
