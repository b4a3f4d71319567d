import { among, text, tidy, whole } from "@/control/page/asked";

export const STATUSES = ["new", "triaged", "resolved"] as const;
export const CATEGORIES = ["broken_snapshot", "incorrect_metadata", "missing_snapshot", "takedown", "general_feedback"] as const;

export interface AskedReports {
  status?: (typeof STATUSES)[number];
  category?: (typeof CATEGORIES)[number];
  search?: string;
  /** The report that is open. */
  id?: number;
}

export function readAskedReports(found: Record<string, unknown>): AskedReports {
  return tidy({ status: among(found["status"], STATUSES), category: among(found["category"], CATEGORIES), search: text(found["search"]), id: whole(found["id"]) });
}
