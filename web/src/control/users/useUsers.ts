import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { usePieces } from "@/control/page/usePieces";
import { useWrite } from "@/control/page/useWrite";

type Schemas = components["schemas"];
export type User = Schemas["UserRecord"];
export type Role = Schemas["UserForm"]["role"];
export type SignedIn = Schemas["SessionRecord"];
export type Token = Schemas["TokenRecord"];
export type Invited = Schemas["InvitedUser"];

/** GET /api/admin/users */
export function useUsers() {
  return usePieces<User>(["users"], (cursor, signal) => body<Schemas["Piece_UserRecord"]>(api.GET("/api/admin/users", { signal, params: { query: { cursor } } })));
}

/** GET /api/admin/users/{id} */
export function useUser(id: number) {
  return useQuery({ queryKey: ["users", id], queryFn: ({ signal }) => body<User>(api.GET("/api/admin/users/{id}", { signal, params: { path: { id } } })) });
}

/** POST /api/admin/users */
export function useInvite() {
  return useWrite((form: Schemas["UserForm"]) => body<Invited>(api.POST("/api/admin/users", { body: form })), [["users"]]);
}

/** PATCH /api/admin/users/{id} */
export function useChangeUser(id: number) {
  return useWrite((form: Schemas["UserChangesForm"]) => body<User>(api.PATCH("/api/admin/users/{id}", { params: { path: { id } }, body: form })), [["users"]]);
}

/** POST /api/admin/users/{id}/link */
export function useNewLink(id: number) {
  return useWrite(() => body<Invited>(api.POST("/api/admin/users/{id}/link", { params: { path: { id } } })), [["users"]]);
}

/** DELETE /api/admin/users/{id} */
export function useDeleteUser(id: number) {
  return useWrite(() => body(api.DELETE("/api/admin/users/{id}", { params: { path: { id } } })), [["users"]]);
}

/** GET /api/admin/users/{id}/sessions */
export function useUserSessions(id: number) {
  return usePieces<SignedIn>(["users", id, "sessions"], (cursor, signal) => body<Schemas["Piece_SessionRecord"]>(api.GET("/api/admin/users/{id}/sessions", { signal, params: { path: { id }, query: { cursor } } })));
}

/** DELETE /api/admin/users/{id}/sessions, or one of them */
export function useEndUserSessions(id: number) {
  return useWrite((session: number | "all") => (session === "all"
    ? body<unknown>(api.DELETE("/api/admin/users/{id}/sessions", { params: { path: { id } } }))
    : body<unknown>(api.DELETE("/api/admin/users/{id}/sessions/{session_id}", { params: { path: { id, session_id: session } } }))), [["users"]]);
}

/** GET /api/admin/users/{id}/tokens */
export function useUserTokens(id: number) {
  return usePieces<Token>(["users", id, "tokens"], (cursor, signal) => body<Schemas["Piece_TokenRecord"]>(api.GET("/api/admin/users/{id}/tokens", { signal, params: { path: { id }, query: { cursor } } })));
}

/** DELETE /api/admin/users/{id}/tokens/{token_id} */
export function useRevokeUserToken(id: number) {
  return useWrite((token: number) => body(api.DELETE("/api/admin/users/{id}/tokens/{token_id}", { params: { path: { id, token_id: token } } })), [["users"]]);
}
