export interface AskedStart {
  /** The job of the crawl that was started, once there is one: the page can be left and opened again. */
  job?: number;
  /** The address of a run that waits for a contact: it is not typed again. */
  contactFor?: string;
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedStart(found: Record<string, unknown>): AskedStart {
  const job = Number(found["job"]);
  if (Number.isSafeInteger(job) && job > 0) return { job };
  return typeof found["contactFor"] === "string" ? { contactFor: found["contactFor"] } : {};
}
