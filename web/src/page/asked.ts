import { isDay } from "@/api/day";

/** Which page, which of its years, and how it is shown: as it stands in the address bar. */
export interface AskedPage {
  url?: string;
  year?: number;
  view?: "list";
  only?: Only;
  day?: string;
}

export const ONLY = ["changes", "ok"] as const;
export type Only = (typeof ONLY)[number];

/** Read the address bar; what cannot be meant is left out. */
export function readAskedPage(found: Record<string, unknown>): AskedPage {
  const year = Number(found["year"]);
  const day = found["day"];
  const asked: AskedPage = {
    url: typeof found["url"] === "string" && found["url"].trim() ? found["url"].trim() : undefined,
    year: Number.isInteger(year) && year >= 1970 && year <= 9999 ? year : undefined,
    view: found["view"] === "list" ? "list" : undefined,
    only: ONLY.find((one) => one === found["only"]),
    day: isDay(day) ? day : undefined,
  };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
}
