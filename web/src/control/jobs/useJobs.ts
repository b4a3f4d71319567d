import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { useDeed } from "@/api/useDeed";
import { pollEvery, type Liveness } from "../live/useLive";
import { queryOf, type AskedJobs } from "./asked";

type Schemas = components["schemas"];
export type Job = Schemas["JobShown"];
export type Execution = Schemas["ExecutionShown"];
export const PAGE_SIZE = 25;

/** GET /api/v1/jobs */
export function useJobs(asked: AskedJobs, liveness: Liveness) {
  return useQuery({ queryKey: ["crawl", "jobs", asked], placeholderData: keepPreviousData, staleTime: 0, refetchInterval: pollEvery(liveness), queryFn: ({ signal }) => body<Schemas["JobList"]>(api.GET("/api/v1/jobs", { signal, params: { query: queryOf(asked, PAGE_SIZE) } })) });
}

/** GET /api/v1/jobs/status-counts */
export function useStatusCounts(liveness: Liveness) {
  return useQuery({ queryKey: ["crawl", "jobs", "counts"], staleTime: 0, refetchInterval: pollEvery(liveness), queryFn: ({ signal }) => body<Record<string, number>>(api.GET("/api/v1/jobs/status-counts", { signal })) });
}

/** GET /api/v1/jobs/{id} */
export function useJob(id: number, liveness: Liveness) {
  return useQuery({ queryKey: ["crawl", "job", id], enabled: id > 0, staleTime: 0, refetchInterval: pollEvery(liveness), queryFn: ({ signal }) => body<Job>(api.GET("/api/v1/jobs/{id}", { signal, params: { path: { id } } })) });
}

/** GET /api/v1/jobs/{id}/stats */
export function useJobStats(id: number) {
  return useQuery({ queryKey: ["crawl", "job", id, "stats"], queryFn: ({ signal }) => body<Schemas["JobStatsShown"]>(api.GET("/api/v1/jobs/{id}/stats", { signal, params: { path: { id } } })) });
}

/** GET /api/v1/jobs/{id}/executions */
export function useJobExecutions(id: number) {
  return useQuery({ queryKey: ["crawl", "job", id, "executions"], placeholderData: keepPreviousData, staleTime: 0, queryFn: ({ signal }) => body<Schemas["ExecutionList"]>(api.GET("/api/v1/jobs/{id}/executions", { signal, params: { path: { id }, query: { limit: 50 } } })) });
}

export type Deed = "run" | "again" | "pause" | "resume" | "pauseRun" | "resumeRun" | "retry" | "recrawl" | "stop" | "discard" | "cancel" | "delete";

/** A deed, and the job as it stood when the deed was asked for: a run that began meanwhile is another one. */
export interface Wish {
  deed: Deed;
  job: Job;
}

/** The routes below /api/v1/jobs/{id} that change a job, and /api/admin/crawls/pause, resume and stop for its run; says afterwards what was done. */
export function useJobDeed() {
  const queries = useQueryClient();
  return useDeed({
    mutationFn: perform,
    onSettled: () => Promise.all([queries.invalidateQueries({ queryKey: ["crawl"] }), queries.invalidateQueries({ queryKey: ["scheduler"] })]),
  });
}

async function perform({ deed, job }: Wish): Promise<string> {
  const params = { path: { id: job.id } };
  const run = job.latest_execution?.id ?? 0;
  switch (deed) {
    case "run":
      await api.POST("/api/v2/jobs/{id}/force-run", { params });
      return "It runs as soon as a worker is free. Its rhythm stays as it is.";
    case "again":
      await api.POST("/api/v1/jobs", { body: { source_id: job.source_id } as Schemas["JobForm"] });
      return "It runs once more, as soon as a worker is free.";
    case "pause":
      await api.POST("/api/v1/jobs/{id}/pause", { params });
      return "Its next runs wait until you resume it.";
    case "resume":
      await api.POST("/api/v1/jobs/{id}/resume", { params });
      return "It goes on, at the emptiest time within its interval.";
    case "pauseRun":
      await api.POST("/api/admin/crawls/pause", { body: { execution: run } });
      return "The run hears of it within a second.";
    case "resumeRun":
      await api.POST("/api/admin/crawls/resume", { body: { execution: run } });
      return job.status === "running" ? "The run goes on where it was." : "The run goes on where it was, as soon as a worker takes it up.";
    case "retry":
      await api.POST("/api/v1/jobs/{id}/retry", { params });
      return "It is tried again at once, with all its retries.";
    case "recrawl":
      return requeued(run);
    case "stop":
      return said(await body<Schemas["CrawlStopped"]>(api.POST("/api/admin/crawls/stop", { body: { execution: run, discard: false } })), "The run drains: pages under way are finished and everything it has captured is kept.");
    case "discard":
      return said(await body<Schemas["CrawlStopped"]>(api.POST("/api/admin/crawls/stop", { body: { execution: run, discard: true } })), "The run ends and what it has captured is thrown away.");
    case "cancel":
      await api.POST("/api/v1/jobs/{id}/cancel", { params });
      return "The job has ended for good. What it captured is kept.";
    case "delete":
      await api.DELETE("/api/v1/jobs/{id}", { params });
      return "The job is deleted. Its runs and what they captured stay.";
  }
}

/** POST /api/v1/executions/{id}/requeue until it has looked at the whole run */
async function requeued(id: number): Promise<string> {
  let cursor: string | null = null;
  let added = 0;
  const taken = new Set<string>();
  do {
    const done: Schemas["RunRequeueReceipt"] = await body(api.POST("/api/v1/executions/{id}/requeue", { params: { path: { id } }, body: { apply: true, cursor } }));
    added += done.added;
    for (const place of done.places) taken.add(place.when);
    cursor = done.next;
  } while (cursor !== null);
  if (added === 0) return "No page was queued: only files that pages embed failed, or the pages are queued already or out of scope now.";
  return `${added === 1 ? "1 page is" : `${added.toLocaleString("en")} pages are`} queued again. ${[...taken].join(" ")}`;
}

function said(done: Schemas["CrawlStopped"], sentence: string): string {
  const silent = done.held.find((one) => one.isSilent);
  return silent ? `${sentence} Its process ${silent.holder ?? ""} has not been heard of for a while: the next worker ends it.` : sentence;
}

/** POST /api/admin/crawls */
export function useStartCrawl() {
  const queries = useQueryClient();
  return useDeed({
    mutationFn: (form: { urls: string[]; source?: string; name?: string; config?: Record<string, unknown> }) => body<Schemas["CrawlBegun"]>(api.POST("/api/admin/crawls", { body: form as Schemas["CrawlForm"] })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["crawl"] }),
  });
}
