import type { Plan } from "./useEditions";
import { t } from "@/language/control/editions";

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

/** Say why nothing is made of an entry of a plan. */
export function whyNot(reason: string): string {
  return t.of("why", reason);
}

/** Say what became of a plan for one source. */
export function toldOf(plan: Plan): { title: string; isGood: boolean } {
  if (plan.created > 0 && plan.applied) return { title: t("told", { year: String(plan.year) }), isGood: true };
  const reason = plan.entries.find((entry) => entry.reason)?.reason;
  return { title: t("toldNot", { year: String(plan.year), why: reason ? whyNot(reason) : t("nothingToCrawl") }), isGood: false };
}
