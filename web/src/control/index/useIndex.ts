import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import type { Operation } from "@/control/operations/useOperations";
import { usePieces } from "@/control/page/usePieces";
import { useWrite } from "@/control/page/useWrite";

type Schemas = components["schemas"];
export type IndexOverview = Schemas["IndexOverview"];
export type BrokenFile = Schemas["BrokenFile"];

/** GET /api/admin/index */
export function useIndexState() {
  return useQuery({
    queryKey: ["index"],
    queryFn: ({ signal }) => body<IndexOverview>(api.GET("/api/admin/index", { signal })),
    refetchInterval: (query) => (query.state.data?.reading.length ? 2000 : 10_000),
  });
}

/** GET /api/admin/index/broken-files */
export function useBrokenFiles() {
  return usePieces<BrokenFile>(["index", "broken"], (cursor, signal) => body<Schemas["Piece_BrokenFile"]>(api.GET("/api/admin/index/broken-files", { signal, params: { query: { cursor } } })), 30_000);
}

/** POST /api/admin/index/rebuild */
export function useRebuildIndex() {
  return useWrite((source: string | undefined) => body<Operation>(api.POST("/api/admin/index/rebuild", { body: source ? { source } : {} })), [["operations"], ["index"]]);
}

/** POST /api/admin/search-index/rebuild */
export function useRebuildSearch() {
  return useWrite(() => body<Operation>(api.POST("/api/admin/search-index/rebuild")), [["operations"], ["index"]]);
}

/** POST /api/admin/verifications */
export function useVerify() {
  return useWrite((form: Schemas["VerificationForm"]) => body<Operation>(api.POST("/api/admin/verifications", { body: form })), [["operations"], ["storage-state"]]);
}
