export const VIEWS = ["form", "yaml"] as const;
export type SourceView = (typeof VIEWS)[number];

export interface AskedSources {
  q?: string;
  enabled?: "yes" | "no";
  page?: number;
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedSources(found: Record<string, unknown>): AskedSources {
  const page = Number(found["page"]);
  const enabled = found["enabled"];
  return {
    ...(typeof found["q"] === "string" && found["q"].trim() ? { q: found["q"] } : {}),
    ...(enabled === "yes" || enabled === "no" ? { enabled } : {}),
    ...(Number.isInteger(page) && page > 1 ? { page } : {}),
  };
}

/** Which view of a source the address bar asks for: the form is not said. */
export function readSourceView(found: Record<string, unknown>): { view?: "yaml"; url?: string } {
  return {
    ...(found["view"] === "yaml" ? { view: "yaml" as const } : {}),
    ...(typeof found["url"] === "string" && found["url"] ? { url: found["url"] } : {}),
  };
}
