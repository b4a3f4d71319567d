import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";

type Schemas = components["schemas"];
export type Explanation = Schemas["Explanation"];

/** GET /api/explain; its attempts come piece by piece */
export function useExplanation(url: string | undefined) {
  const found = useInfiniteQuery({
    queryKey: ["explain", url],
    enabled: url !== undefined,
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: Explanation) => last.attempts.next ?? undefined,
    queryFn: ({ pageParam, signal }) => body<Explanation>(api.GET("/api/explain", { signal, params: { query: { url: url ?? "", cursor: pageParam } } })),
  });
  return { ...found, first: found.data?.pages[0], attempts: found.data?.pages.flatMap((page) => page.attempts.items) ?? [] };
}
