import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { useWrite } from "@/control/page/useWrite";

export type Operation = components["schemas"]["OperationShown"];
export type OperationKind = components["schemas"]["OperationKind"];

/** Whether an operation still has something to do. */
export function isOpen(operation: Operation | null | undefined): boolean {
  return operation?.state === "queued" || operation?.state === "running";
}

/** GET /api/admin/operations/{id}, every second while it runs */
export function useOperation(id: number | null | undefined) {
  return useQuery({
    queryKey: ["operations", id],
    enabled: typeof id === "number",
    queryFn: ({ signal }) => body<Operation>(api.GET("/api/admin/operations/{id}", { signal, params: { path: { id: id ?? 0 } } })),
    refetchInterval: (query) => (query.state.data && !isOpen(query.state.data) ? false : 1000),
  });
}

/** GET /api/admin/operations, the newest of some kinds; often while one runs */
export function useOperations(kinds: OperationKind[], limit = 8) {
  return useQuery({
    queryKey: ["operations", "list", kinds],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const lists = await Promise.all(kinds.map((kind) => body<components["schemas"]["Listed_OperationShown_"]>(api.GET("/api/admin/operations", { signal, params: { query: { kind, limit } } }))));
      return lists.flatMap((list) => list.items).sort((a, b) => b.id - a.id).slice(0, limit);
    },
    refetchInterval: (query) => (query.state.data?.some(isOpen) ? 1000 : 15_000),
  });
}

/** POST /api/admin/operations/{id}/cancel */
export function useCancelOperation() {
  return useWrite((id: number) => body<Operation>(api.POST("/api/admin/operations/{id}/cancel", { params: { path: { id } } })), [["operations"]]);
}
