import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { useWrite } from "@/control/page/useWrite";

type Schemas = components["schemas"];
export type Rebalance = Schemas["Rebalance"];
export type Job = Schemas["JobRecord"];

/** GET /api/v1/scheduler/distribution */
export function useDistribution() {
  return useQuery({ queryKey: ["scheduler", "distribution"], refetchInterval: 30_000, queryFn: ({ signal }) => body<Schemas["Distribution"]>(api.GET("/api/v1/scheduler/distribution", { signal })) });
}

/** GET /api/v1/scheduler/metrics */
export function useSchedulerMetrics() {
  return useQuery({ queryKey: ["scheduler", "metrics"], refetchInterval: 10_000, queryFn: ({ signal }) => body<Schemas["SchedulerMetrics"]>(api.GET("/api/v1/scheduler/metrics", { signal })) });
}

/** GET /api/v1/jobs, those that are scheduled, the next first */
export function useNextRuns() {
  return useQuery({
    queryKey: ["scheduler", "next"],
    refetchInterval: 30_000,
    queryFn: ({ signal }) => body<Schemas["JobList"]>(api.GET("/api/v1/jobs", { signal, params: { query: { status: "scheduled", sort_by: "next_run_at", sort_order: "asc", limit: 50 } } })),
  });
}

/** POST /api/v1/scheduler/rebalance/preview */
export function usePreviewRebalance() {
  return useWrite(() => body<Rebalance>(api.POST("/api/v1/scheduler/rebalance/preview")), []);
}

/** POST /api/v1/scheduler/rebalance */
export function useRebalance() {
  return useWrite(() => body<Rebalance>(api.POST("/api/v1/scheduler/rebalance")), [["scheduler"], ["crawl"]]);
}
