import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components, paths } from "@/api/schema";
import { pollEvery, type Liveness } from "../live/useLive";
import { pollFew } from "../page/polling";

type Schemas = components["schemas"];
export type Execution = Schemas["ExecutionDetail"];
export type Host = Schemas["CrawledHost"];
export type QueuedUrl = Schemas["QueuedUrl"];
export type Report = Schemas["RunReport"];
interface Piece<T> {
  items: T[];
  next?: string | null;
}
const STILL = { placeholderData: keepPreviousData, staleTime: 0 } as const;

/** GET /api/v1/executions/{id} */
export function useExecution(id: number, liveness: Liveness) {
  return useQuery({ queryKey: ["crawl", "execution", id], ...STILL, enabled: id > 0, refetchInterval: pollEvery(liveness), queryFn: ({ signal }) => body<Execution>(api.GET("/api/v1/executions/{id}", { signal, params: { path: { id } } })) });
}

/** GET /api/frontier/stats of a run; null for one that has no frontier */
export function useFrontierStats(id: number, isRunning: boolean) {
  return useQuery({ queryKey: ["crawl", "frontier", id, "stats"], ...STILL, refetchInterval: isRunning ? 2000 : false, queryFn: ({ signal }) => body<Schemas["FrontierFigures"]>(api.GET("/api/frontier/stats", { signal, params: { query: { execution: id } } })) });
}

/** GET /api/v1/executions/{id}/report */
export function useReport(id: number, isRunning: boolean) {
  return useQuery({ queryKey: ["crawl", "report", id], placeholderData: keepPreviousData, staleTime: 10_000, refetchInterval: isRunning ? 15_000 : false, queryFn: ({ signal }) => body<Report>(api.GET("/api/v1/executions/{id}/report", { signal, params: { path: { id } } })) });
}

/** GET /api/frontier/hosts of a run, piece by piece */
export function useHosts(id: number, order: "due" | "met", isRunning: boolean) {
  return useInfiniteQuery({
    queryKey: ["crawl", "frontier", id, "hosts", order],
    staleTime: 0,
    refetchInterval: pollFew(isRunning ? 5000 : false),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: Piece<Host>) => last.next ?? undefined,
    queryFn: ({ signal, pageParam }) => body<Piece<Host>>(api.GET("/api/frontier/hosts", { signal, params: { query: { execution: id, order, limit: 50, ...(pageParam ? { cursor: pageParam } : {}) } } })),
  });
}

export type UrlQuery = NonNullable<paths["/api/frontier/urls"]["get"]["parameters"]["query"]>;

/** GET /api/frontier/urls of a run, piece by piece */
export function useUrls(id: number, asked: UrlQuery, isRunning: boolean) {
  return useInfiniteQuery({
    queryKey: ["crawl", "frontier", id, "urls", asked],
    staleTime: 0,
    refetchInterval: pollFew(isRunning ? 5000 : false),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: Piece<QueuedUrl>) => last.next ?? undefined,
    queryFn: ({ signal, pageParam }) => body<Piece<QueuedUrl>>(api.GET("/api/frontier/urls", { signal, params: { query: { execution: id, limit: 50, ...asked, ...(pageParam ? { cursor: pageParam } : {}) } } })),
  });
}

/** GET /api/frontier/urls: what a run captured of its start page; null if that is not indexed, or was not captured */
export function useStartCapture(id: number, url: string | undefined) {
  return useQuery({
    queryKey: ["crawl", "execution", id, "start", url],
    enabled: url !== undefined && URL.canParse(url),
    queryFn: async ({ signal }) => {
      const found = await body<Piece<QueuedUrl>>(api.GET("/api/frontier/urls", { signal, params: { query: { execution: id, limit: 50, kind: "page", last: true, search: url ?? "" } } }));
      // A seed may be written without the slash at its end.
      return found.items.find((row) => row.url === new URL(url ?? "").href)?.capture ?? null;
    },
  });
}

/** GET /api/stats/timeseries of a run, from its beginning to its end */
export function useRunSeries(run: Execution) {
  const { id, started_at: from, completed_at: to } = run;
  return useQuery({ queryKey: ["series", "run", id, from, to], enabled: from !== null, ...STILL, refetchInterval: to ? false : 30_000, queryFn: ({ signal }) => body<Schemas["TimeSeries"]>(api.GET("/api/stats/timeseries", { signal, params: { query: { execution: id, ...(from ? { from } : {}), ...(to ? { to } : {}) } } })) });
}

/** GET /api/changes of a run: jobId there is an execution's number */
export function useRunChanges(id: number) {
  return useQuery({ queryKey: ["changes", "run", id], queryFn: ({ signal }) => body<Schemas["ChangeList"]>(api.GET("/api/changes", { signal, params: { query: { jobId: id, pageSize: 20 } } })) });
}
