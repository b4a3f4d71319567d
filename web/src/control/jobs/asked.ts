export const STATES = ["pending", "scheduled", "running", "paused", "completed", "failed", "cancelled"] as const;
export type JobState = (typeof STATES)[number];
export const SORTS = ["created_at", "next_run_at", "last_run_at", "source_name", "status"] as const;
export type JobSort = (typeof SORTS)[number];
/** Orders in which the first is the smallest. */
const RISING: readonly JobSort[] = ["next_run_at", "source_name", "status"];

export interface AskedJobs {
  q?: string;
  status?: JobState;
  source?: number;
  sort?: JobSort;
  page?: number;
}

/** Read the address bar; what cannot be meant is left out. */
export function readAskedJobs(found: Record<string, unknown>): AskedJobs {
  const page = Number(found["page"]);
  const source = Number(found["source"]);
  const status = STATES.find((one) => one === found["status"]);
  const sort = SORTS.find((one) => one === found["sort"]);
  return {
    ...(typeof found["q"] === "string" && found["q"].trim() ? { q: found["q"] } : {}),
    ...(status ? { status } : {}),
    ...(Number.isInteger(source) && source > 0 ? { source } : {}),
    ...(sort && sort !== "created_at" ? { sort } : {}),
    ...(Number.isInteger(page) && page > 1 ? { page } : {}),
  };
}

/** Return what the server is asked for. */
export function queryOf(asked: AskedJobs, pageSize: number) {
  const sort = asked.sort ?? "created_at";
  return {
    limit: pageSize,
    offset: ((asked.page ?? 1) - 1) * pageSize,
    sort_by: sort,
    sort_order: RISING.includes(sort) ? "asc" : "desc",
    ...(asked.q ? { search: asked.q } : {}),
    ...(asked.status ? { status: asked.status } : {}),
    ...(asked.source ? { source_id: asked.source } : {}),
  };
}
