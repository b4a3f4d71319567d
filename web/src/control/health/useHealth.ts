import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import { fetchPatiently } from "@/api/connection";
import type { components } from "@/api/schema";

type Schemas = components["schemas"];
export type Health = Schemas["Health"];
export type Ready = Schemas["Ready"];
export type Alert = Schemas["AlertRecord"];
export type Worker = Schemas["ProcessRecord"];

/** GET /api/health */
export function useHealth() {
  return useQuery({ queryKey: ["health"], refetchInterval: 5000, queryFn: ({ signal }) => body<Health>(api.GET("/api/health", { signal, params: { query: { details: true } } })) });
}

/** GET /health/ready; a part that is away is an answer, too */
export function useReadiness() {
  return useQuery({
    queryKey: ["health", "ready"],
    refetchInterval: 5000,
    queryFn: async ({ signal }) => {
      const answer = await fetchPatiently("/health/ready", { signal, credentials: "same-origin" });
      return (await answer.json()) as Ready;
    },
  });
}

/** GET /api/alerts */
export function useAlerts() {
  return useQuery({ queryKey: ["alerts", "health"], refetchInterval: 10_000, queryFn: ({ signal }) => body<Schemas["Piece_AlertRecord"]>(api.GET("/api/alerts", { signal, params: { query: { limit: 20 } } })) });
}

/** GET /api/admin/workers */
export function useWorkers() {
  return useQuery({ queryKey: ["workers", "health"], refetchInterval: 5000, queryFn: ({ signal }) => body<Schemas["Piece_ProcessRecord"]>(api.GET("/api/admin/workers", { signal, params: { query: { limit: 100 } } })) });
}
