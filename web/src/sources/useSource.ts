import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";

type Schemas = components["schemas"];
export type Crawl = Schemas["EditionSummary"];

/** GET /api/sources/{code}/editions: the crawls of a source, the newest first. */
export function useCrawls(code: string | undefined) {
  return useQuery({ queryKey: ["crawls", code], enabled: code !== undefined, queryFn: ({ signal }) => body<Crawl[]>(api.GET("/api/sources/{code}/editions", { signal, params: { path: { code: code ?? "" } } })) });
}

/** GET /api/search without words, of one source: how many captures each month or year holds */
export function useSourceOverTime(source: string) {
  return useQuery({ queryKey: ["search", "source", source], queryFn: ({ signal }) => body<Schemas["SearchResults"]>(api.GET("/api/search", { signal, params: { query: { source, view: "snapshots", pageSize: 1 } } })) });
}
