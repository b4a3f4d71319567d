import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import type { Asked } from "./asked";

export type SearchResults = components["schemas"]["SearchResults"];
export type SearchResult = components["schemas"]["SearchResult"];
export type Piece = components["schemas"]["TextPiece"];

export const PAGE_SIZE = 20;

/** GET /api/search. The last results stay while the next ones are asked for: nothing jumps. */
export function useSearch(asked: Asked) {
  return useQuery({
    queryKey: ["search", asked],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => body<SearchResults>(api.GET("/api/search", { signal, params: { query: { ...asked, view: asked.view ?? "pages", pageSize: PAGE_SIZE, passages: 2 } } })),
  });
}
