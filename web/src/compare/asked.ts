export interface AskedComparison {
  to?: number;
  from?: number;
  view?: "unified";
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedComparison(found: Record<string, unknown>): AskedComparison {
  const id = (value: unknown) => (Number.isSafeInteger(Number(value)) && Number(value) > 0 ? Number(value) : undefined);
  const asked: AskedComparison = { to: id(found["to"]), from: id(found["from"]), view: found["view"] === "unified" ? "unified" : undefined };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
}
