import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { removeAll } from "@/control/page/removeAll";
import { usePieces } from "@/control/page/usePieces";
import { useWrite } from "@/control/page/useWrite";
import type { AskedFrontier } from "./asked";

type Schemas = components["schemas"];
export type QueuedUrl = Schemas["QueuedUrl"];
export type AddReceipt = Schemas["AddReceipt"];

/** GET /api/frontier/stats */
export function useFrontierStats(execution: number | undefined) {
  return useQuery({
    queryKey: ["frontier", "stats", execution],
    placeholderData: keepPreviousData,
    refetchInterval: 5000,
    retry: false,
    queryFn: ({ signal }) => body<Schemas["FrontierFigures"]>(api.GET("/api/frontier/stats", { signal, params: { query: { execution } } })),
  });
}

/** GET /api/frontier/urls */
export function useFrontierUrls(asked: AskedFrontier) {
  return usePieces<QueuedUrl>(["frontier", "urls", asked], (cursor, signal) => body<Schemas["Piece_QueuedUrl"]>(api.GET("/api/frontier/urls", { signal, params: { query: { ...asked, cursor } } })));
}

export interface Wish {
  urls: string[];
  source: string | undefined;
  isSeed: boolean;
}

/** POST /api/frontier/add, or /api/frontier/seed */
export function useAddUrls() {
  return useWrite(({ urls, source, isSeed }: Wish) => {
    const form = { urls, ...(source ? { source } : {}) };
    return isSeed ? body<AddReceipt>(api.POST("/api/frontier/seed", { body: form })) : body<AddReceipt>(api.POST("/api/frontier/add", { body: form }));
  }, [["frontier"]]);
}

/** POST /api/frontier/recover */
export function useRecover() {
  return useWrite(() => body<Schemas["RecoverReceipt"]>(api.POST("/api/frontier/recover")), [["frontier"], ["domains"]]);
}

/** DELETE /api/frontier, until nothing is left of it */
export function useClearFrontier() {
  return useWrite(({ execution, onRemoved }: { execution: number; onRemoved: (removed: number) => void }) => removeAll(() => body<Schemas["ClearReceipt"]>(api.DELETE("/api/frontier", { params: { query: { execution } } })), onRemoved), [["frontier"], ["domains"], ["crawl"]]);
}
