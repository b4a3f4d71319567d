export const MODES = ["page", "renderer", "text", "source", "headers", "parts"] as const;
export type Mode = (typeof MODES)[number];

/** Which address, and how its capture is shown; the moment stands in the path. */
export interface AskedView {
  url?: string;
  mode?: Exclude<Mode, "page">;
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedView(found: Record<string, unknown>): AskedView {
  const mode = MODES.find((one) => one === found["mode"]);
  return {
    ...(typeof found["url"] === "string" && found["url"].trim() ? { url: found["url"].trim() } : {}),
    ...(mode && mode !== "page" ? { mode } : {}),
  };
}

/** The fourteen digits that a path means; `20240301` is the end of that day, anything else is now. */
export function wholeDigits(path: string): string | undefined {
  if (!/^\d{4,14}$/.test(path)) return undefined;
  return path.length === 14 ? path : path + "99991231235959".slice(path.length);
}
