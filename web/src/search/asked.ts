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
}

export const KINDS = ["html", "text", "pdf", "other"] as const;
export const STATUSES = ["1xx", "2xx", "3xx", "4xx", "5xx", "unknown"] as const;
export type Kind = (typeof KINDS)[number];
export type Status = (typeof STATUSES)[number];
/** The filters that a facet sets. */
export const FILTERS = ["source", "language", "type", "status", "host"] as const;
export type Filter = (typeof FILTERS)[number];

const DAY = /^\d{4}-\d{2}-\d{2}$/;

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
  const day = (value: unknown) => (typeof value === "string" && DAY.test(value) ? value : undefined);
  const page = Number(found["page"]);
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
  };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
}

/** Return the search with something changed; every change but of the page starts at the first page. */
export function changed(asked: Asked, change: Partial<Asked>): Asked {
  return readAsked({ ...asked, page: undefined, ...change });
}
