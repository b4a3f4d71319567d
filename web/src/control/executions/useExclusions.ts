import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { useDeed } from "@/api/useDeed";

type Schemas = components["schemas"];

/** GET /api/v1/executions/{id}/exclusions */
export function useExclusions(id: number) {
  return useQuery({ queryKey: ["crawl", "exclusions", id], queryFn: ({ signal }) => body<Schemas["RunExclusions"]>(api.GET("/api/v1/executions/{id}/exclusions", { signal, params: { path: { id } } })) });
}

/** POST /api/v1/executions/{id}/exclusions/preview */
export function useExclusionsPreview(id: number, rules: string[]) {
  return useQuery({
    queryKey: ["crawl", "exclusions", id, "preview", rules],
    enabled: rules.length > 0,
    placeholderData: keepPreviousData,
    retry: false,
    queryFn: ({ signal }) => body<Schemas["MatchedUrls"]>(api.POST("/api/v1/executions/{id}/exclusions/preview", { signal, params: { path: { id } }, body: { rules } })),
  });
}

/** PUT /api/v1/executions/{id}/exclusions */
export function useSetExclusions(id: number) {
  const queries = useQueryClient();
  return useDeed({
    mutationFn: (rules: string[]) => body<Schemas["RunExclusions"]>(api.PUT("/api/v1/executions/{id}/exclusions", { params: { path: { id } }, body: { rules } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["crawl"] }),
  });
}
