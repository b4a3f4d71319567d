/** The job of the crawl that was started, once there is one: the page can be left and opened again. */
export interface AskedStart {
  job?: number;
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedStart(found: Record<string, unknown>): AskedStart {
  const job = Number(found["job"]);
  return Number.isSafeInteger(job) && job > 0 ? { job } : {};
}
