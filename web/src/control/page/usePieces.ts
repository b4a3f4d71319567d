import { keepPreviousData, useInfiniteQuery, type QueryKey } from "@tanstack/react-query";
import { pollFew } from "./polling";

export interface Piece<Row> {
  items: Row[];
  next?: string | null;
}

/** A list that the server gives piece by piece (`items`, `next`); what was shown stays while another is asked for. */
export function usePieces<Row>(queryKey: QueryKey, ask: (cursor: string | undefined, signal: AbortSignal) => Promise<Piece<Row>>, every?: number) {
  const found = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => ask(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: pollFew(every ?? false),
  });
  return { ...found, rows: found.data?.pages.flatMap((page) => page.items) };
}
