import { isDay } from "@/api/day";

/** What is looked for, as it stands in the address bar: a link to a search is the search. */
export interface Asked {
  q?: string;
  source?: string;
  language?: string;
  type?: Kind;
  status?: Status;
  host?: string;
  from?: string;
  to?: string;
  sort?: "relevance" | "newest";
  view?: "pages" | "snapshots";
  page?: number;
  /** Only near-duplicates of this capture. */
  similarTo?: number;
}

export const KINDS = ["html", "text", "pdf", "other"] as const;
export const STATUSES = ["1xx", "2xx", "3xx", "4xx", "5xx", "unknown"] as const;
export type Kind = (typeof KINDS)[number];
export type Status = (typeof STATUSES)[number];
/** The filters that a facet sets. */
export const FILTERS = ["source", "language", "type", "status", "host"] as const;
export type Filter = (typeof FILTERS)[number];

function among<T extends string>(value: unknown, allowed: readonly T[]): T | undefined {
  return allowed.find((one) => one === value);
}

function text(value: unknown): string | undefined {
  // A number or true is what the router reads from ?q=2020 and ?q=true.
  const found = typeof value === "string" ? value : typeof value === "number" || typeof value === "boolean" ? String(value) : "";
  return found.trim() ? found : undefined;
}

/** Read the address bar; what cannot be meant is left out, for the address may be typed by hand. */
export function readAsked(found: Record<string, unknown>): Asked {
  const day = (value: unknown) => (isDay(value) ? value : undefined);
  const page = Number(found["page"]);
  const similarTo = Number(found["similarTo"]);
  const asked: Asked = {
    q: text(found["q"]),
    source: text(found["source"]),
    language: text(found["language"]),
    host: text(found["host"]),
    type: among(found["type"], KINDS),
    status: among(found["status"], STATUSES),
    from: day(found["from"]),
    to: day(found["to"]),
    sort: among(found["sort"], ["relevance", "newest"] as const),
    view: among(found["view"], ["pages", "snapshots"] as const),
    page: Number.isInteger(page) && page > 1 ? page : undefined,
    similarTo: Number.isSafeInteger(similarTo) && similarTo > 0 ? similarTo : undefined,
  };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
}

/** As much as can be looked for at once; an address may be longer. */
const MOST = 256;

/** Whether this is an address too long to be looked for: its page through time is what can be shown. */
export function isLongAddress(typed: string): boolean {
  return typed.length > MOST && /^(https?:\/\/|[^\s/?#]+\.[^\s/?#]+\/)\S+$/i.test(typed);
}

/** Return the search with something changed; every change but of the page starts at the first page. */
export function changed(asked: Asked, change: Partial<Asked>): Asked {
  return readAsked({ ...asked, page: undefined, ...change });
}

export const FORMS = ["csv", "jsonl", "wacz"] as const;
export type Form = (typeof FORMS)[number];

/** Where the results of a search are taken away from, as a file. */
export function exportPath(asked: Asked, form: Form): string {
  const whole = { ...changed(asked, {}), view: asked.view ?? "pages", format: form };
  const query = new URLSearchParams(Object.entries(whole).map(([name, value]) => [name, String(value)]));
  return `/api/search/export?${query}`;
}

/** The first and the last day of a year, for a facet of years. */
export function yearSpan(year: string): { from: string; to: string } {
  return { from: `${year}-01-01`, to: `${year}-12-31` };
}

/** Whether the span in the address is just this year. */
export function isYear(asked: Asked, year: string): boolean {
  const span = yearSpan(year);
  return asked.from === span.from && asked.to === span.to;
}

/** The address that a question names: `url:` in front of it belongs to the question. */
export function addressIn(question: string): string {
  return question.trim().replace(/^url:\s*/i, "");
}
