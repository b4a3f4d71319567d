import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import { fetchPatiently } from "@/api/connection";
import { ApiProblem } from "@/api/problem";
import type { components } from "@/api/schema";
import { readLines, type SiteKind } from "./site";

type Schemas = components["schemas"];
const AT_ONCE = 2000;

/** GET /api/changes/site, some thousand captures at a time */
export function useSiteComparison(from: number | undefined, to: number | undefined) {
  return useInfiniteQuery({
    queryKey: ["site", from, to],
    enabled: from !== undefined && to !== undefined && from !== to,
    staleTime: Infinity,
    initialPageParam: "",
    queryFn: async ({ signal, pageParam }) => {
      const answer = await fetchPatiently(`/api/changes/site?from=${from}&to=${to}&limit=${AT_ONCE}${pageParam ? `&after=${encodeURIComponent(pageParam)}` : ""}`, { signal, credentials: "same-origin" });
      if (!answer.ok) throw await ApiProblem.of(answer);
      return readLines(await answer.text());
    },
    getNextPageParam: (last) => last.next ?? undefined,
  });
}

/** GET /api/coverage/{source}/{year}/comparison/{earlier}, a hundred pages at a time */
export function useEditionDifferences(source: string, earlier: number, year: number, kind: SiteKind | undefined) {
  return useInfiniteQuery({
    queryKey: ["coverage", source, year, "differences", earlier, kind],
    placeholderData: keepPreviousData,
    initialPageParam: "",
    queryFn: ({ signal, pageParam }) => body<Schemas["Piece_EditionDifference"]>(api.GET("/api/coverage/{source}/{year}/comparison/{earlier}", { signal, params: { path: { source, year, earlier }, query: { limit: 100, ...(kind ? { kind } : {}), ...(pageParam ? { cursor: pageParam } : {}) } } })),
    getNextPageParam: (last) => last.next ?? undefined,
  });
}
