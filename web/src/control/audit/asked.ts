import { day, text, tidy } from "@/control/page/asked";

export interface AskedAudit {
  actor?: string;
  action?: string;
  subject?: string;
  from?: string;
  to?: string;
}

export function readAskedAudit(found: Record<string, unknown>): AskedAudit {
  return tidy({ actor: text(found["actor"]), action: text(found["action"]), subject: text(found["subject"]), from: day(found["from"]), to: day(found["to"]) });
}
