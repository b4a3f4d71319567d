import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { usePieces } from "@/control/page/usePieces";

type Schemas = components["schemas"];
export type Setting = Schemas["SettingRecord"];

/** GET /api/admin/settings, all of them: a hundred short rows */
export function useSettings() {
  return usePieces<Setting>(["settings"], (cursor, signal) => body<Schemas["Piece_SettingRecord"]>(api.GET("/api/admin/settings", { signal, params: { query: { cursor, limit: 500 } } })));
}
