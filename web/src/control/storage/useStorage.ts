import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { useWrite } from "@/control/page/useWrite";

type Schemas = components["schemas"];
export type StorageState = Schemas["StorageState"];
export type CleanReceipt = Schemas["CleanReceipt"];

/** GET /api/admin/storage-state */
export function useStorageState() {
  return useQuery({ queryKey: ["storage-state"], refetchInterval: 30_000, queryFn: ({ signal }) => body<StorageState>(api.GET("/api/admin/storage-state", { signal })) });
}

/** GET /api/admin/storage */
export function useStores() {
  return useQuery({ queryKey: ["storage"], refetchInterval: 60_000, queryFn: ({ signal }) => body<Schemas["StoreSizes"]>(api.GET("/api/admin/storage", { signal })) });
}

/** POST /api/admin/cleanup; without `apply` it only says what would go */
export function useCleanup() {
  return useWrite((apply: boolean) => body<CleanReceipt>(api.POST("/api/admin/cleanup", { body: { apply } })), [["storage"], ["storage-state"]]);
}
