import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { useDeed } from "@/api/useDeed";
import { pollEvery, type Liveness } from "../live/useLive";
import { queryOf, type AskedJobs } from "./asked";
import { t } from "@/language/control/jobs";

type Schemas = components["schemas"];
export type Job = Schemas["JobRecord"];
export type Execution = Schemas["ExecutionDetail"];
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
  return useQuery({ queryKey: ["crawl", "job", id, "stats"], queryFn: ({ signal }) => body<Schemas["JobStats"]>(api.GET("/api/v1/jobs/{id}/stats", { signal, params: { path: { id } } })) });
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

/** What was done, in a sentence, and the job that does the rest. */
interface Done {
  said: string;
  job?: number;
}

async function perform({ deed, job }: Wish): Promise<Done> {
  return deed === "recrawl" ? requeued(job.latest_execution?.id ?? 0) : { said: await changed(deed, job) };
}

async function changed(deed: Exclude<Deed, "recrawl">, job: Job): Promise<string> {
  const params = { path: { id: job.id } };
  const run = job.latest_execution?.id ?? 0;
  switch (deed) {
    case "run":
      await api.POST("/api/v2/jobs/{id}/force-run", { params });
      return t("did.run");
    case "again":
      await api.POST("/api/v1/jobs", { body: { source_id: job.source_id } as Schemas["JobForm"] });
      return t("did.again");
    case "pause":
      await api.POST("/api/v1/jobs/{id}/pause", { params });
      return t("did.pause");
    case "resume":
      await api.POST("/api/v1/jobs/{id}/resume", { params });
      return t("did.resume");
    case "pauseRun":
      await api.POST("/api/admin/crawls/pause", { body: { execution: run } });
      return t("did.pauseRun");
    case "resumeRun":
      await api.POST("/api/admin/crawls/resume", { body: { execution: run } });
      return t(job.status === "running" ? "did.resumeRun" : "did.resumeLater");
    case "retry":
      await api.POST("/api/v1/jobs/{id}/retry", { params });
      return t("did.retry");
    case "stop":
      return said(await body<Schemas["StopReceipt"]>(api.POST("/api/admin/crawls/stop", { body: { execution: run, discard: false } })), t("did.stop"));
    case "discard":
      return said(await body<Schemas["StopReceipt"]>(api.POST("/api/admin/crawls/stop", { body: { execution: run, discard: true } })), t("did.discard"));
    case "cancel":
      await api.POST("/api/v1/jobs/{id}/cancel", { params });
      return t("did.cancel");
    case "delete":
      await api.DELETE("/api/v1/jobs/{id}", { params });
      return t("did.delete");
  }
}

/** POST /api/v1/executions/{id}/requeue until it has looked at the whole run */
async function requeued(id: number): Promise<Done> {
  let cursor: string | null = null;
  let added = 0;
  const taken = new Set<string>();
  let job: number | undefined;
  do {
    const done: Schemas["RequeueReceipt_str"] = await body(api.POST("/api/v1/executions/{id}/requeue", { params: { path: { id } }, body: { apply: true, cursor } }));
    added += done.added;
    for (const place of done.places) {
      taken.add(place.when);
      job ??= place.jobId ?? undefined;
    }
    cursor = done.next;
  } while (cursor !== null);
  if (added === 0) return { said: t("did.nothing") };
  return { said: t("did.requeued", { count: added, when: [...taken].join(" ") }), ...(job ? { job } : {}) };
}

function said(done: Schemas["StopReceipt"], sentence: string): string {
  const silent = done.held.find((one) => one.isSilent);
  return silent ? t("did.silent", { said: sentence, holder: silent.holder ?? "" }) : sentence;
}

/** POST /api/admin/crawls */
export function useStartCrawl() {
  const queries = useQueryClient();
  return useDeed({
    mutationFn: (form: { urls: string[]; source?: string; name?: string; config?: Record<string, unknown> }) => body<Schemas["StartedCrawl"]>(api.POST("/api/admin/crawls", { body: form as Schemas["CrawlForm"] })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["crawl"] }),
  });
}
