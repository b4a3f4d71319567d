import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { usePieces } from "@/control/page/usePieces";
import type { AskedSettings } from "./asked";

type Schemas = components["schemas"];
export type Setting = Schemas["SettingShown"];

/** GET /api/admin/settings */
export function useSettings(asked: AskedSettings) {
  return usePieces<Setting>(["settings", asked], (cursor, signal) => body<Schemas["Listed_SettingShown_"]>(api.GET("/api/admin/settings", { signal, params: { query: { ...asked, cursor, limit: 500 } } })));
}
