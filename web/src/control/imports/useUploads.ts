import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { usePieces } from "@/control/page/usePieces";
import { useWrite } from "@/control/page/useWrite";
import { endUpload } from "./uploadWire";

type Schemas = components["schemas"];
export type Upload = Schemas["UploadRecord"];

/** GET /api/admin/uploads */
export function useUploads(state: Upload["state"]) {
  return usePieces<Upload>(["uploads", state], (cursor, signal) => body<Schemas["Piece_UploadRecord"]>(api.GET("/api/admin/uploads", { signal, params: { query: { state, cursor, limit: 20 } } })), 5000);
}

/** POST /api/admin/uploads/{id}/import */
export function useImportAgain() {
  return useWrite((id: number) => body<Schemas["OperationRecord"]>(api.POST("/api/admin/uploads/{id}/import", { params: { path: { id } } })), [["uploads"], ["operations"]]);
}

/** DELETE /api/admin/uploads/{id} */
export function useEndUpload() {
  return useWrite((id: number) => endUpload(id), [["uploads"]]);
}
