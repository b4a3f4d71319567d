import { among, text, tidy } from "@/control/page/asked";

export interface AskedTakedowns {
  /** What is about to be taken out of sight. */
  subject?: string;
  state?: "in_force" | "lifted";
  search?: string;
}

export function readAskedTakedowns(found: Record<string, unknown>): AskedTakedowns {
  return tidy({ subject: text(found["subject"]), state: among(found["state"], ["in_force", "lifted"] as const), search: text(found["search"]) });
}
