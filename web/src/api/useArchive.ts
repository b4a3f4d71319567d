import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";

type Schemas = components["schemas"];

/** GET /api/stats */
export function useStats() {
  return useQuery({ queryKey: ["stats"], queryFn: ({ signal }) => body<Schemas["Stats"]>(api.GET("/api/stats", { signal })) });
}

/** GET /api/sources */
export function useSources() {
  return useQuery({ queryKey: ["sources"], queryFn: ({ signal }) => body<Schemas["SourceSummary"][]>(api.GET("/api/sources", { signal })) });
}

/** GET /api/changes, the newest few of all times: without a day the server tells of the latest crawls alone */
export function useLatestChanges() {
  return useQuery({ queryKey: ["changes", "latest"], queryFn: ({ signal }) => body<Schemas["ChangeList"]>(api.GET("/api/changes", { signal, params: { query: { pageSize: 6, from: "1970-01-01" } } })) });
}

/** GET /api/search without words: how many captures each month or year holds */
export function useCapturesOverTime() {
  return useQuery({ queryKey: ["search", "all"], queryFn: ({ signal }) => body<Schemas["SearchResults"]>(api.GET("/api/search", { signal, params: { query: { view: "snapshots", pageSize: 1 } } })) });
}
