import { among, text, tidy, whole } from "@/control/page/asked";

export const STATUSES = ["pending", "deferred", "completed", "failed", "excluded", "retried"] as const;
export const KINDS = ["page", "requisite", "sitemap"] as const;

export interface AskedFrontier {
  execution?: number;
  status?: (typeof STATUSES)[number];
  domain?: string;
  kind?: (typeof KINDS)[number];
  search?: string;
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedFrontier(found: Record<string, unknown>): AskedFrontier {
  return tidy({
    execution: whole(found["execution"]),
    status: among(found["status"], STATUSES),
    domain: text(found["domain"]),
    kind: among(found["kind"], KINDS),
    search: text(found["search"]),
  });
}

/** Read addresses as they are pasted: one a line, or with blanks or commas between; none twice. */
export function pasted(written: string): string[] {
  return [...new Set(written.split(/[\s,]+/).filter(Boolean))];
}
