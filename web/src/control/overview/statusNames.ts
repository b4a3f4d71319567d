import { t } from "@/language/control/overview";

const NAMES: Record<number, string> = {
  200: "OK", 203: "Non-authoritative", 204: "No content", 206: "Partial content", 301: "Moved permanently", 302: "Found", 303: "See other", 304: "Not modified", 307: "Temporary redirect", 308: "Permanent redirect",
  400: "Bad request", 401: "Unauthorized", 403: "Forbidden", 404: "Not found", 405: "Method not allowed", 406: "Not acceptable", 408: "Request timeout", 410: "Gone", 429: "Too many requests", 451: "Unavailable for legal reasons",
  500: "Server error", 502: "Bad gateway", 503: "Service unavailable", 504: "Gateway timeout",
};

/** A status code with its name; without one no response came. */
export function statusName(status: number | null): string {
  if (status === null) return t("noResponse");
  return NAMES[status] ? `${status} ${NAMES[status]}` : String(status);
}

/** How a status looks in a chart: the number beside it says the same. */
export function statusTone(status: number | null): "good" | "accent" | "warn" | "bad" {
  if (status === null || status >= 500) return "bad";
  if (status >= 400) return "warn";
  return status >= 300 ? "accent" : "good";
}
