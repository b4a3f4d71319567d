import type { Plan } from "./useEditions";

interface Planned {
  code: string;
  enabled: boolean;
  is_yearly: boolean;
}

/** The sources that a year is planned for unless somebody chooses others: those that are crawled yearly, else all that are enabled. */
export function sourcesOfYear(sources: readonly Planned[]): string[] {
  const enabled = sources.filter((one) => one.enabled);
  const yearly = enabled.filter((one) => one.is_yearly);
  return (yearly.length > 0 ? yearly : enabled).map((one) => one.code);
}

const WHY: Record<string, string> = {
  already_scheduled: "planned already",
  name_taken: "another job has its name",
  active_job: "a crawl of it is queued or running; plan it when that has ended",
  source_disabled: "the source is disabled",
  max_create_per_run: "over the limit of this plan",
  report_not_generated: "its first crawl has no report yet",
  no_gaps: "nothing is missing",
  seed_covered: "captured already",
  shard_exists: "planned already",
  nothing_to_attach: "nothing to add",
};

/** Say why nothing is made of an entry of a plan. */
export function whyNot(reason: string): string {
  return WHY[reason] ?? reason;
}

/** Say what became of a plan for one source. */
export function toldOf(plan: Plan): { title: string; isGood: boolean } {
  if (plan.created > 0 && plan.applied) return { title: `The ${plan.year} edition is planned: its crawl starts on 1 January ${plan.year}.`, isGood: true };
  const reason = plan.entries.find((entry) => entry.reason)?.reason;
  return { title: `Nothing was planned for ${plan.year}: ${reason ? whyNot(reason) : "the source has nothing to crawl"}.`, isGood: false };
}
