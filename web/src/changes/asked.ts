import { isDay } from "@/api/day";

export const TYPES = ["updated", "new_page", "gone", "error"] as const;
export type ChangeKind = (typeof TYPES)[number];

export interface AskedChanges {
  source?: string;
  type?: ChangeKind;
  noise?: "show";
  from?: string;
  to?: string;
  page?: number;
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedChanges(found: Record<string, unknown>): AskedChanges {
  const page = Number(found["page"]);
  const type = TYPES.find((one) => one === found["type"]);
  const day = (name: "from" | "to") => { const value = found[name]; return isDay(value) ? { [name]: value } : {}; };
  return {
    ...(typeof found["source"] === "string" && found["source"] ? { source: found["source"] } : {}),
    ...(type ? { type } : {}),
    ...(found["noise"] === "show" ? { noise: "show" as const } : {}),
    ...day("from"),
    ...day("to"),
    ...(Number.isInteger(page) && page > 1 ? { page } : {}),
  };
}

/** The feed of what is listed: its source, kind and noise; a feed has no days, it is of what is new. */
export function feedOf({ source, type, noise }: AskedChanges): string {
  const asked = new URLSearchParams({ ...(source ? { source } : {}), ...(type ? { type } : {}), ...(noise ? { noise } : {}) }).toString();
  return `/api/changes/rss${asked ? `?${asked}` : ""}`;
}

/** Group what is sorted by time under its days, UTC, in the order in which they come. */
export function byDay<T>(items: T[], moment: (item: T) => string): [string, T[]][] {
  const days = new Map<string, T[]>();
  for (const item of items) {
    const day = moment(item).slice(0, 10);
    const found = days.get(day);
    if (found) found.push(item);
    else days.set(day, [item]);
  }
  return [...days];
}
