import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { useDeed } from "@/api/useDeed";
import { useWorkers } from "../overview/useOverview";
import type { Scope, Survey } from "./survey";

/** POST /api/v1/sources/survey */
export function useSurvey() {
  return useDeed({ mutationFn: (form: { url: string; contact?: string; config?: { scope: Scope } }) => body<Survey>(api.POST("/api/v1/sources/survey", { body: form as components["schemas"]["SurveyForm"] })) });
}

/** With a scheduler of their own, or without. */
const RUN_JOBS: readonly string[] = ["worker", "runner"];

/** Whether no process runs crawls; false until it is known. */
export function useLacksWorker(): boolean {
  const { data } = useWorkers();
  return data !== undefined && !data.items.some(({ kind, isAlive }) => RUN_JOBS.includes(kind) && isAlive);
}

const INDEXED_MS = 2000;
/** Search follows the index within seconds; pages that ask not to be indexed never come. */
const TRIES = 30;

/** GET /api/search of one source once its run is indexed, until it finds a page or a minute has passed */
export function useFirstPages(code: string, isIndexed: boolean) {
  return useQuery<components["schemas"]["SearchResults"]>({
    queryKey: ["search", "first", code],
    enabled: isIndexed,
    staleTime: 0,
    refetchInterval: ({ state }) => ((state.data?.total ?? 0) > 0 || state.dataUpdateCount >= TRIES ? false : INDEXED_MS),
    queryFn: ({ signal }) => body(api.GET("/api/search", { signal, params: { query: { source: code, pageSize: 5 } } })),
  });
}
