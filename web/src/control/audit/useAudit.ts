import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { usePieces } from "@/control/page/usePieces";
import type { AskedAudit } from "./asked";

type Schemas = components["schemas"];
export type AuditEvent = Schemas["AuditRecord"];

/** GET /api/admin/audit */
export function useAudit(asked: AskedAudit) {
  return usePieces<AuditEvent>(["audit", asked], (cursor, signal) => body<Schemas["AuditList"]>(api.GET("/api/admin/audit", { signal, params: { query: { ...asked, cursor } } })));
}
