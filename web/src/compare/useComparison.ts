import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import type { AskedComparison } from "./asked";

export type Comparison = components["schemas"]["Comparison"];

/** GET /api/changes/compare */
export function useComparison({ to, from }: AskedComparison) {
  return useQuery({
    queryKey: ["compare", to, from],
    enabled: to !== undefined,
    staleTime: Infinity,
    queryFn: ({ signal }) => body<Comparison>(api.GET("/api/changes/compare", { signal, params: { query: { toSnapshotId: to ?? 0, ...(from ? { fromSnapshotId: from } : {}) } } })),
  });
}
