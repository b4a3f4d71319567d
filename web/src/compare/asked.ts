export interface AskedComparison {
  to?: number;
  from?: number;
  view?: "unified";
  /** Marked word by word, unless whole lines are asked for. */
  by?: "lines";
  /** All that the page shows, with navigation and footer; else its own content. */
  text?: "full";
  /** The capture `to` compared with the page as it is now. */
  live?: true;
  /** Without the lines around the changes. */
  only?: "changes";
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedComparison(found: Record<string, unknown>): AskedComparison {
  const id = (value: unknown) => (Number.isSafeInteger(Number(value)) && Number(value) > 0 ? Number(value) : undefined);
  const asked: AskedComparison = {
    to: id(found["to"]),
    from: id(found["from"]),
    view: found["view"] === "unified" ? "unified" : undefined,
    by: found["by"] === "lines" ? "lines" : undefined,
    text: found["text"] === "full" ? "full" : undefined,
    live: String(found["live"]) === "true" || undefined,
    only: found["only"] === "changes" ? "changes" : undefined,
  };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
}
