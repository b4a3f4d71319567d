import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { useDeed } from "@/api/useDeed";
import { pollEvery, type Liveness } from "../live/useLive";
import type { AskedSources } from "./asked";
import { t } from "@/language/control/sources";

type Schemas = components["schemas"];
export type Source = Schemas["SourceRecord"];
export type Preview = Schemas["SourcePreview"];
export const PAGE_SIZE = 25;

/** GET /api/v1/sources */
export function useManagedSources(asked: AskedSources, limit = PAGE_SIZE) {
  return useQuery({
    queryKey: ["managed", asked, limit],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => body<Schemas["SourceList"]>(api.GET("/api/v1/sources", { signal, params: { query: { limit, offset: ((asked.page ?? 1) - 1) * limit, ...(asked.q ? { search: asked.q } : {}), ...(asked.enabled ? { enabled: asked.enabled === "yes" } : {}) } } })),
  });
}

/** GET /api/v1/sources/names: those that a form of the control room offers, also sources without captures */
export function useSourceChoices() {
  return useQuery({ queryKey: ["managed", "names"], queryFn: ({ signal }) => body<Schemas["SourceName"][]>(api.GET("/api/v1/sources/names", { signal })) }).data;
}

/** GET /api/v1/sources/exclude-presets */
export function useExcludePresets() {
  return useQuery({ queryKey: ["exclude-presets"], staleTime: Infinity, queryFn: ({ signal }) => body<Record<string, string>>(api.GET("/api/v1/sources/exclude-presets", { signal })) }).data;
}

/** GET /api/v1/sources/{id} */
export function useManagedSource(id: number) {
  return useQuery({ queryKey: ["managed", id], enabled: id > 0, queryFn: ({ signal }) => body<Source>(api.GET("/api/v1/sources/{id}", { signal, params: { path: { id } } })) });
}

/** The crawl job of a source: GET /api/v1/jobs?source_id=&type=crawl */
export function useCrawlJob(sourceId: number, liveness: Liveness) {
  return useQuery({ queryKey: ["crawl", "jobs", "of", sourceId], enabled: sourceId > 0, staleTime: 0, refetchInterval: pollEvery(liveness), queryFn: async ({ signal }) => {
    const { jobs } = await body<Schemas["JobList"]>(api.GET("/api/v1/jobs", { signal, params: { query: { source_id: sourceId, type: "crawl", limit: 5 } } }));
    return jobs.find((job) => job.status !== "cancelled") ?? null;
  } });
}

export interface PreviewWish {
  source: Record<string, unknown>;
  urls: string[];
}

/** POST /api/v1/sources/preview */
export function usePreview(wish: PreviewWish | null) {
  return useQuery({
    queryKey: ["managed", "preview", wish],
    enabled: wish !== null,
    placeholderData: keepPreviousData,
    retry: false,
    queryFn: ({ signal }) => body<Preview>(api.POST("/api/v1/sources/preview", { signal, body: { ...wish?.source, urls: wish?.urls ?? [] } as Schemas["SourcePreviewForm"] })),
  });
}

export type Survey = Schemas["SiteSurvey"];

/** POST /api/v1/sources/survey: reads robots.txt, sitemaps and the first page of the real site */
export function useSurvey() {
  return useDeed({ mutationFn: ({ url, config }: { url: string; config: unknown }) => body<Survey>(api.POST("/api/v1/sources/survey", { body: { url, config } as Schemas["SurveyForm"] })) });
}

export interface Saved {
  source: Source;
  said: string;
}

/** POST /api/v1/sources with a new source, or PATCH /api/v1/sources/{id} with the fields that changed */
export function useSaveSource(id: number | null) {
  const queries = useQueryClient();
  return useDeed({
    mutationFn: async (source: Record<string, unknown>): Promise<Saved> => {
      const saved = id === null
        ? await body<Source>(api.POST("/api/v1/sources", { body: source as Schemas["SourceForm"] }))
        : await body<Source>(api.PATCH("/api/v1/sources/{id}", { params: { path: { id } }, body: source as Schemas["SourceChanges"] }));
      return { source: saved, said: id === null ? t("didCreate") : t("didSave") };
    },
    onSettled: () => Promise.all([["managed"], ["crawl"], ["scheduler"], ["sources"]].map((queryKey) => queries.invalidateQueries({ queryKey }))),
  });
}

/** POST /api/v1/sources/{id}/enable and /disable, DELETE /api/v1/sources/{id} */
export function useSourceDeed(source: Source) {
  const queries = useQueryClient();
  const params = { path: { id: source.id } };
  return useDeed({
    mutationFn: async (deed: "enable" | "disable" | "delete"): Promise<string> => {
      if (deed === "delete") {
        await api.DELETE("/api/v1/sources/{id}", { params });
        return t("didDelete");
      }
      const done = await body<Schemas["SwitchedSource"]>(deed === "enable" ? api.POST("/api/v1/sources/{id}/enable", { params }) : api.POST("/api/v1/sources/{id}/disable", { params }));
      return t(deed === "enable" ? "didEnable" : "didDisable", { count: done.jobs });
    },
    onSettled: () => Promise.all([["managed"], ["crawl"], ["scheduler"], ["sources"]].map((queryKey) => queries.invalidateQueries({ queryKey }))),
  });
}

/** POST /api/v1/sources/import with YAML; `isTrial` says what would change and changes nothing. */
export async function importYaml(text: string, isTrial: boolean): Promise<Schemas["SourceImport"]> {
  return body<Schemas["SourceImport"]>(api.POST("/api/v1/sources/import", { params: { query: { dry_run: isTrial } }, body: text as never, bodySerializer: (written) => String(written), headers: { "Content-Type": "application/yaml" } }));
}

/** GET /api/v1/sources/export of one source */
export function useYaml(code: string) {
  return useQuery({ queryKey: ["managed", "yaml", code], enabled: code !== "", queryFn: ({ signal }) => body<string>(api.GET("/api/v1/sources/export", { signal, params: { query: { format: "yaml", code: [code] } }, parseAs: "text" }) as Promise<{ data?: string }>) });
}
