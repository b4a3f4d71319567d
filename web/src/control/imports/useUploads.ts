import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { usePieces } from "@/control/page/usePieces";
import { useWrite } from "@/control/page/useWrite";
import { endUpload } from "./uploadWire";

type Schemas = components["schemas"];
export type Upload = Schemas["UploadShown"];

/** GET /api/admin/uploads */
export function useUploads() {
  return usePieces<Upload>(["uploads"], (cursor, signal) => body<Schemas["Listed_UploadShown_"]>(api.GET("/api/admin/uploads", { signal, params: { query: { cursor, limit: 20 } } })), 5000);
}

/** POST /api/admin/uploads/{id}/import */
export function useImportAgain() {
  return useWrite((id: number) => body<Schemas["OperationShown"]>(api.POST("/api/admin/uploads/{id}/import", { params: { path: { id } } })), [["uploads"], ["operations"]]);
}

/** DELETE /api/admin/uploads/{id} */
export function useEndUpload() {
  return useWrite((id: number) => endUpload(id), [["uploads"]]);
}
