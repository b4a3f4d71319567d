import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { usePieces } from "@/control/page/usePieces";
import { useWrite } from "@/control/page/useWrite";

type Schemas = components["schemas"];
export type TokenForm = Schemas["TokenForm"];

/** GET /api/account/sessions */
export function useOwnSessions() {
  return usePieces<Schemas["SessionShown"]>(["account", "sessions"], (cursor, signal) => body<Schemas["Listed_SessionShown_"]>(api.GET("/api/account/sessions", { signal, params: { query: { cursor } } })));
}

/** DELETE /api/account/sessions (all others), or one of them */
export function useEndOwnSessions() {
  return useWrite((session: number | "others") => (session === "others"
    ? body<unknown>(api.DELETE("/api/account/sessions"))
    : body<unknown>(api.DELETE("/api/account/sessions/{id}", { params: { path: { id: session } } }))), [["account"]]);
}

/** GET /api/account/tokens */
export function useOwnTokens() {
  return usePieces<Schemas["TokenShown"]>(["account", "tokens"], (cursor, signal) => body<Schemas["Listed_TokenShown_"]>(api.GET("/api/account/tokens", { signal, params: { query: { cursor } } })));
}

/** POST /api/account/tokens */
export function useMakeToken() {
  return useWrite((form: TokenForm) => body<Schemas["NewToken"]>(api.POST("/api/account/tokens", { body: form })), [["account"]]);
}

/** DELETE /api/account/tokens/{id} */
export function useRevokeOwnToken() {
  return useWrite((id: number) => body(api.DELETE("/api/account/tokens/{id}", { params: { path: { id } } })), [["account"]]);
}
