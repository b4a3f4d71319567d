import { OUTCOMES, type Outcome } from "./flow";

/** Which addresses of an edition are listed. */
export interface AskedEdition {
  outcome?: Outcome;
  reason?: string;
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedEdition(found: Record<string, unknown>): AskedEdition {
  const outcome = OUTCOMES.find((one) => one === found["outcome"]);
  const reason = found["reason"];
  return { ...(outcome ? { outcome } : {}), ...(outcome && typeof reason === "string" && reason ? { reason } : {}) };
}
