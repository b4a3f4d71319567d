import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { usePieces } from "@/control/page/usePieces";
import { useWrite } from "@/control/page/useWrite";
import type { AskedReports } from "./asked";

type Schemas = components["schemas"];
export type Report = Schemas["Report"];

/** GET /api/admin/reports */
export function useReports({ status, category, search }: AskedReports) {
  return usePieces<Report>(["reports", status, category, search], (cursor, signal) => body<Schemas["ReportList"]>(api.GET("/api/admin/reports", { signal, params: { query: { status, category, search, cursor } } })), 30_000);
}

/** GET /api/admin/reports/{id} */
export function useReport(id: number) {
  return useQuery({ queryKey: ["reports", id], queryFn: ({ signal }) => body<Report>(api.GET("/api/admin/reports/{id}", { signal, params: { path: { id } } })) });
}

/** PATCH /api/admin/reports/{id} */
export function useTriage(id: number) {
  return useWrite((form: Schemas["ReportChanges"]) => body<Report>(api.PATCH("/api/admin/reports/{id}", { params: { path: { id } }, body: form })), [["reports"]]);
}
