import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { useWrite } from "@/control/page/useWrite";

export type Operation = components["schemas"]["OperationRecord"];
export type OperationKind = components["schemas"]["OperationKind"];

/** Whether an operation still has something to do. */
export function isOpen(operation: Operation | null | undefined): boolean {
  return operation?.state === "queued" || operation?.state === "running";
}

/** GET /api/admin/operations, the newest of some kinds; often while one runs */
export function useOperations(kinds: OperationKind[], limit = 8) {
  return useQuery({
    queryKey: ["operations", "list", kinds],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const lists = await Promise.all(kinds.map((kind) => body<components["schemas"]["Piece_OperationRecord"]>(api.GET("/api/admin/operations", { signal, params: { query: { kind, limit } } }))));
      return lists.flatMap((list) => list.items).sort((a, b) => b.id - a.id).slice(0, limit);
    },
    refetchInterval: (query) => (query.state.data?.some(isOpen) ? 1000 : 15_000),
  });
}

/** POST /api/admin/operations/{id}/cancel */
export function useCancelOperation() {
  return useWrite((id: number) => body<Operation>(api.POST("/api/admin/operations/{id}/cancel", { params: { path: { id } } })), [["operations"]]);
}
