import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import { ApiProblem, mayPass } from "@/api/problem";
import type { components } from "@/api/schema";
import type { Asked } from "./asked";

export type SearchResults = components["schemas"]["SearchResults"];
export type SearchResult = components["schemas"]["SearchResult"];
export type Piece = components["schemas"]["TextPiece"];

export const PAGE_SIZE = 20;

/** Whether the first search index is still being built: the same search is answered in a while. */
export function isPending(problem: unknown): boolean {
  return problem instanceof ApiProblem && problem.code === "search_index_pending";
}

/** GET /api/search. The last results stay while the next ones are asked for: nothing jumps. */
export function useSearch(asked: Asked) {
  return useQuery<SearchResults>({
    queryKey: ["search", asked],
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (isPending(state.error) ? 3000 : false),
    retry: (times, problem) => times < 2 && !isPending(problem) && mayPass(problem),
    queryFn: ({ signal }) => body<SearchResults>(api.GET("/api/search", { signal, params: { query: { ...asked, view: asked.view ?? "pages", pageSize: PAGE_SIZE, passages: 2 } } })),
  });
}
