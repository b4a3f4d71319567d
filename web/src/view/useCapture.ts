import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";

type Schemas = components["schemas"];
export type CaptureView = Schemas["CaptureView"];
export type Neighbour = Schemas["Neighbour"];
export type Parts = Schemas["Parts"];

/** GET /api/replay/resolve */
export function askResolved(url: string, timestamp: string | undefined, signal?: AbortSignal) {
  return body<Schemas["Resolved"]>(api.GET("/api/replay/resolve", { ...(signal ? { signal } : {}), params: { query: { url, ...(timestamp ? { timestamp } : {}) } } }));
}

export function useResolved(url: string | undefined, timestamp: string | undefined) {
  return useQuery({ queryKey: ["resolve", url, timestamp], enabled: url !== undefined, placeholderData: keepPreviousData, queryFn: ({ signal }) => askResolved(url ?? "", timestamp, signal) });
}

/** GET /api/snapshots/{id}/view. The frame of a members' capture has an address that ends: until then it stays, and before that it is asked for again. */
export function useView(id: number | null | undefined) {
  const lasts = (view: CaptureView | undefined) => (view?.frameSeconds ? view.frameSeconds * 900 : null);
  return useQuery<CaptureView>({
    queryKey: ["view", id],
    enabled: typeof id === "number",
    placeholderData: keepPreviousData,
    staleTime: ({ state }) => lasts(state.data) ?? 30_000,
    refetchInterval: ({ state }) => lasts(state.data) ?? false,
    queryFn: ({ signal }) => body<CaptureView>(api.GET("/api/snapshots/{id}/view", { signal, params: { path: { id: id ?? 0 } } })),
  });
}

/** GET /api/snapshots/{id}/parts */
export function useParts(id: number) {
  return useQuery({ queryKey: ["parts", id], staleTime: Infinity, queryFn: ({ signal }) => body<Parts>(api.GET("/api/snapshots/{id}/parts", { signal, params: { path: { id } } })) });
}

/** GET /api/snapshots/{id}/record */
export function useRecord(id: number) {
  return useQuery({ queryKey: ["record", id], staleTime: Infinity, queryFn: ({ signal }) => body<Schemas["CaptureRecord"]>(api.GET("/api/snapshots/{id}/record", { signal, params: { path: { id } } })) });
}

/** GET /api/snapshots/{id}/content */
export function useContent(id: number, form: "text" | "source") {
  return useQuery({ queryKey: ["content", id, form], staleTime: Infinity, queryFn: ({ signal }) => body<Schemas["CaptureContent"]>(api.GET("/api/snapshots/{id}/content", { signal, params: { path: { id }, query: { form } } })) });
}
