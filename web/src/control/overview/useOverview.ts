import { keepPreviousData, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { calmed } from "../live/calm";
import { POLL_MS, pollEvery, useLive, type Liveness } from "../live/useLive";

type Schemas = components["schemas"];
export type Figures = Schemas["CrawlerFigures"];
export type Run = Schemas["ActiveExecution"];
export type Worker = Schemas["ProcessRecord"];
export type Host = Schemas["CrawledHost"];

const STILL = { placeholderData: keepPreviousData, staleTime: 0 } as const;
const HOSTS = 100;

// Polled: a stream for each would take all connections that a browser opens to one server, with two windows.
/** GET /api/crawler/figures */
export function useFigures() {
  return useQuery({ queryKey: ["crawler", "figures"], ...STILL, refetchInterval: POLL_MS, queryFn: ({ signal }) => body<Figures>(api.GET("/api/crawler/figures", { signal })) });
}

/** GET /api/health?details=true */
export function useHealth() {
  return useQuery({ queryKey: ["health", "now"], ...STILL, refetchInterval: POLL_MS, queryFn: ({ signal }) => body<Schemas["Health"]>(api.GET("/api/health", { signal, params: { query: { details: true } } })) });
}

/** News of many runs come at once; so often is asked what they mean for the page. */
const NEWS_MS = 1000;
/** What a run's progress changes; its frontier, hosts and addresses are asked for by the pages that show them. */
const COUNTED: readonly string[] = ["jobs", "job", "execution"];

/** /api/crawler/events: everything on the page that a job's news may change is asked for anew. */
export function useCrawlNews(): Liveness {
  const queries = useQueryClient();
  const { all, counts } = useMemo(() => ({
    all: calmed(() => void queries.invalidateQueries({ queryKey: ["crawl"] }), NEWS_MS),
    // A question that is under way is not given up for the next one: a crawl tells of its progress all the time.
    counts: calmed(() => void queries.invalidateQueries({ predicate: ({ queryKey: [room, what] }) => room === "crawl" && COUNTED.includes(String(what)) }, { cancelRefetch: false }), NEWS_MS),
  }), [queries]);
  useEffect(() => () => { all.stop(); counts.stop(); }, [all, counts]);
  return useLive("/api/crawler/events", { "job:status": all.ask, "job:progress": counts.ask, "job:completed": all.ask, gap: all.ask });
}

/** GET /api/admin/workers */
export function useWorkers() {
  return useQuery({ queryKey: ["crawl", "workers"], ...STILL, refetchInterval: POLL_MS, queryFn: ({ signal }) => body<{ items: Worker[] }>(api.GET("/api/admin/workers", { signal, params: { query: { limit: 200 } } })) });
}

/** GET /api/v1/jobs?status=running */
export function useRunningJobs(liveness: Liveness) {
  return useQuery({ queryKey: ["crawl", "jobs", "running"], ...STILL, refetchInterval: pollEvery(liveness), queryFn: ({ signal }) => body<Schemas["JobList"]>(api.GET("/api/v1/jobs", { signal, params: { query: { status: "running", limit: 20 } } })) });
}

/** GET /api/v1/jobs?status=pending,scheduled: those with a queued run, the newest change first */
export function useWaitingJobs(liveness: Liveness) {
  return useQuery({ queryKey: ["crawl", "jobs", "waiting"], ...STILL, refetchInterval: pollEvery(liveness), select: (found: Schemas["JobList"]) => found.jobs.filter((job) => job.latest_execution?.waits_for), queryFn: ({ signal }) => body<Schemas["JobList"]>(api.GET("/api/v1/jobs", { signal, params: { query: { status: "pending,scheduled", sort_by: "updated_at", limit: 50 } } })) });
}

export interface Running {
  id: number;
  source: string;
  job: Schemas["JobRecord"];
  stats: Schemas["FrontierFigures"] | undefined;
  /** Not known yet where it is missing. */
  hosts: Host[] | undefined;
}

/** GET /api/frontier/stats and /api/frontier/hosts of each run */
export function useFrontiers(runs: Pick<Running, "id" | "source" | "job">[]): Running[] {
  const stats = useQueries({ queries: runs.map(({ id }) => ({ queryKey: ["crawl", "frontier", id, "stats"], ...STILL, refetchInterval: POLL_MS, queryFn: () => body<Schemas["FrontierFigures"]>(api.GET("/api/frontier/stats", { params: { query: { execution: id } } })) })) });
  const hosts = useQueries({ queries: runs.map(({ id }) => ({ queryKey: ["crawl", "frontier", id, "hosts"], ...STILL, refetchInterval: POLL_MS, queryFn: () => body<{ items: Host[] }>(api.GET("/api/frontier/hosts", { params: { query: { execution: id, limit: HOSTS } } })) })) });
  return runs.map((run, at) => ({ ...run, stats: stats[at]?.data, hosts: hosts[at]?.data?.items }));
}

/** GET /api/stats/timeseries */
export function useSeries(hours: number, about: { execution?: number; source?: string } = {}) {
  return useQuery({ queryKey: ["series", hours, about], ...STILL, refetchInterval: 30_000, queryFn: ({ signal }) => body<Schemas["TimeSeries"]>(api.GET("/api/stats/timeseries", { signal, params: { query: { hours, ...about } } })) });
}

/** GET /api/alerts */
export function useAlerts() {
  return useQuery({ queryKey: ["crawl", "alerts"], ...STILL, refetchInterval: POLL_MS, queryFn: ({ signal }) => body<{ items: Schemas["AlertRecord"][] }>(api.GET("/api/alerts", { signal, params: { query: { limit: 20 } } })) });
}

/** GET /api/admin/storage-state and /api/admin/storage */
export function useStores() {
  const state = useQuery({ queryKey: ["storage", "state"], refetchInterval: 30_000, queryFn: ({ signal }) => body<Schemas["StorageState"]>(api.GET("/api/admin/storage-state", { signal })) });
  const stores = useQuery({ queryKey: ["storage", "stores"], refetchInterval: 60_000, queryFn: ({ signal }) => body<Schemas["StoreSizes"]>(api.GET("/api/admin/storage", { signal })) });
  return { state, stores };
}

export type Activity = Schemas["Activity"];
export type BusyBy = Schemas["BusyOrder"];

/** GET /api/stats/activity */
export function useActivity(hours: number, sortBy: BusyBy) {
  return useQuery({ queryKey: ["crawl", "activity", hours, sortBy], ...STILL, refetchInterval: POLL_MS, queryFn: ({ signal }) => body<Activity>(api.GET("/api/stats/activity", { signal, params: { query: { hours, sortBy } } })) });
}

/** Return where the steps of a series begin, in seconds, and how long they are. */
export function wholeSteps(series: Schemas["TimeSeries"] | undefined): { times: number[]; step: number } {
  if (!series) return { times: [], step: 60 };
  // The last step is under way and not counted yet: shown, it would look like a fall. The server says where it ends, for this machine's clock may be wrong.
  const end = Date.parse(series.to) / 1000;
  return { times: series.timestamps.map((moment) => Date.parse(moment) / 1000).filter((begin) => begin + series.stepSeconds < end), step: series.stepSeconds };
}
