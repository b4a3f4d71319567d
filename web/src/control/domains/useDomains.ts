import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { usePieces } from "@/control/page/usePieces";
import { removeAll } from "@/control/page/removeAll";
import { useWrite } from "@/control/page/useWrite";
import type { AskedDomains } from "./asked";

type Schemas = components["schemas"];
export type DomainSummary = Schemas["DomainRecord"];
export type DomainDetail = Schemas["DomainDetail"];
export type DomainSettings = Schemas["DomainSettingsForm"];

/** GET /api/domains */
export function useDomains({ state, sortBy = "domain" }: AskedDomains) {
  const order = sortBy === "domain" ? "asc" as const : "desc" as const;
  return usePieces<DomainSummary>(["domains", state, sortBy], (cursor, signal) => body<Schemas["Piece_DomainRecord"]>(api.GET("/api/domains", { signal, params: { query: { state, sortBy, order, cursor } } })), 10_000);
}

/** GET /api/domains/{domain} */
export function useDomain(domain: string) {
  return useQuery({
    queryKey: ["domains", domain],
    refetchInterval: 5000,
    queryFn: ({ signal }) => body<DomainDetail>(api.GET("/api/domains/{domain}", { signal, params: { path: { domain } } })),
  });
}

/** GET /api/domains/{domain}/robots */
export function useRobots(domain: string, url: string | undefined) {
  return useQuery({
    queryKey: ["domains", domain, "robots", url],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => body<Schemas["DomainRobots"]>(api.GET("/api/domains/{domain}/robots", { signal, params: { path: { domain }, query: { url } } })),
  });
}

/** PUT /api/domains/{domain}/settings */
export function useDomainSettings(domain: string) {
  return useWrite((form: DomainSettings) => body<Schemas["DomainSettings"]>(api.PUT("/api/domains/{domain}/settings", { params: { path: { domain } }, body: form })), [["domains"]]);
}

/** POST /api/domains/{domain}/refresh-robots */
export function useRefreshRobots(domain: string) {
  return useWrite(() => body<Schemas["DomainReceipt"]>(api.POST("/api/domains/{domain}/refresh-robots", { params: { path: { domain } } })), [["domains"]]);
}

/** POST /api/admin/domains/{domain}/reset */
export function useResetCircuit(domain: string) {
  return useWrite(() => body<Schemas["DomainReceipt"]>(api.POST("/api/admin/domains/{domain}/reset", { params: { path: { domain } } })), [["domains"]]);
}

/** POST /api/domains/{domain}/purge, until nothing is left */
export function usePurgeDomain(domain: string) {
  return useWrite((onRemoved: (removed: number) => void) => removeAll(() => body<Schemas["ClearReceipt"]>(api.POST("/api/domains/{domain}/purge", { params: { path: { domain } } })), onRemoved), [["domains"], ["frontier"], ["crawl"]]);
}
