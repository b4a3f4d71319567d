import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { usePieces } from "@/control/page/usePieces";
import { useWrite } from "@/control/page/useWrite";
import type { AskedTakedowns } from "./asked";

type Schemas = components["schemas"];
export type Takedown = Schemas["Takedown"];
export type TakedownPreview = Schemas["TakedownPreview"];

/** GET /api/admin/takedowns */
export function useTakedowns({ state, search }: AskedTakedowns) {
  return usePieces<Takedown>(["takedowns", state, search], (cursor, signal) => body<Schemas["Piece_Takedown"]>(api.GET("/api/admin/takedowns", { signal, params: { query: { state, search, cursor } } })));
}

/** GET /api/admin/takedowns/preview; what another subject would take along is not shown meanwhile */
export function useTakedownPreview(subject: string | undefined) {
  return useQuery({
    queryKey: ["takedowns", "preview", subject],
    enabled: subject !== undefined,
    queryFn: ({ signal }) => body<TakedownPreview>(api.GET("/api/admin/takedowns/preview", { signal, params: { query: { subject: subject ?? "" } } })),
  });
}

/** What is taken out of sight, or comes back, may stand in any answer that this browser holds. */
const EVERYTHING = [[]];

/** POST /api/admin/takedowns */
export function useHide() {
  return useWrite((form: Schemas["TakedownForm"]) => body<Schemas["TakedownReceipt"]>(api.POST("/api/admin/takedowns", { body: form })), EVERYTHING);
}

/** POST /api/admin/takedowns/{id}/undo */
export function useUnhide() {
  return useWrite((id: number) => body<Schemas["TakedownReceipt"]>(api.POST("/api/admin/takedowns/{id}/undo", { params: { path: { id } } })), EVERYTHING);
}
