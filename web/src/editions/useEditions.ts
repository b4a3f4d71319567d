import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import { fetchPatiently } from "@/api/connection";
import { ApiProblem } from "@/api/problem";
import type { components } from "@/api/schema";
import type { AskedEdition } from "./asked";

type Schemas = components["schemas"];
export type EditionListed = Schemas["EditionRecord"];
export type Coverage = Schemas["Coverage"];
export type CoverageAddress = Schemas["CoverageAddress"];

/** GET /api/coverage */
export function useEditions(source?: string) {
  return useInfiniteQuery({
    queryKey: ["editions", source],
    initialPageParam: "",
    queryFn: ({ signal, pageParam }) => body<Schemas["Piece_EditionRecord"]>(api.GET("/api/coverage", { signal, params: { query: { ...(source ? { source } : {}), ...(pageParam ? { cursor: pageParam } : {}) } } })),
    getNextPageParam: (last) => last.next ?? undefined,
  });
}

/** GET /api/coverage/{source}/{year} */
export function useCoverage(source: string, year: number) {
  return useQuery({ queryKey: ["coverage", source, year], queryFn: ({ signal }) => body<Coverage>(api.GET("/api/coverage/{source}/{year}", { signal, params: { path: { source, year } } })) });
}

/** GET /api/coverage/{source}/{year}/addresses */
export function useAddresses(source: string, year: number, asked: AskedEdition) {
  return useInfiniteQuery({
    queryKey: ["coverage", source, year, asked],
    enabled: asked.outcome !== undefined,
    initialPageParam: "",
    queryFn: ({ signal, pageParam }) => body<Schemas["Piece_CoverageAddress"]>(api.GET("/api/coverage/{source}/{year}/addresses", { signal, params: { path: { source, year }, query: { ...asked, ...(pageParam ? { cursor: pageParam } : {}) } } })),
    getNextPageParam: (last) => last.next ?? undefined,
  });
}

/** What a comparison of two editions says of itself. */
export interface EditionComparison {
  counts: Record<string, number>;
  pages: number;
}

/** GET /api/coverage/{source}/{year}/comparison-{before}.json; null where the two have not been compared. */
export function useEditionComparison(source: string, year: number, before: number | undefined) {
  return useQuery({
    queryKey: ["coverage", source, year, "against", before],
    enabled: before !== undefined,
    queryFn: async ({ signal }) => {
      const answer = await fetchPatiently(`/api/coverage/${encodeURIComponent(source)}/${year}/comparison-${before}.json`, { signal, credentials: "same-origin" });
      if (answer.status === 404) return null;
      if (!answer.ok) throw await ApiProblem.of(answer);
      return (await answer.json()) as EditionComparison;
    },
  });
}
