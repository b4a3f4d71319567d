import type { components } from "@/api/schema";
import { t } from "@/language/control/start";
import { duration } from "../charts/format";
import { robotsText, ruleText } from "../executions/outcomes";

export type Survey = components["schemas"]["SiteSurvey"];
export type Address = Survey["addresses"][number];

/** A first crawl of a large or unknown site takes so many pages, unless the operator wants all of them. */
export const FEW = 500;

/** How many pages there are, as far as a sitemap says so. */
export function pagesIn(survey: Pick<Survey, "page_count" | "page_count_is_exact" | "linked_pages" | "robots">): string {
  if (survey.page_count === null) return t("unknownPages", { count: survey.linked_pages });
  const isSample = survey.robots.forbidden > 0 && survey.robots.judged < survey.page_count;
  const known = t(survey.page_count_is_exact ? "exactly" : isSample ? "about" : "atLeast", { number: survey.page_count });
  return survey.robots.forbidden > 0 ? t("withoutForbidden", { known }) : known;
}

/** How long the pages take at the pace of the crawl. */
export function timeFor(pages: number, delayS: number): string {
  return duration(Math.max(1, pages * delayS));
}

/** What the first crawl may be limited to; the first one is chosen unless the operator says otherwise. */
export function amountsOf(survey: Pick<Survey, "page_count" | "page_count_is_exact" | "delay_s">): { pages: number | null; text: string }[] {
  const known = survey.page_count;
  const whole = known === null ? t("whole") : t(survey.page_count_is_exact ? "wholeTime" : "wholeAtLeast", { time: timeFor(known, survey.delay_s) });
  const all = { pages: null, text: whole };
  if (known !== null && survey.page_count_is_exact && known <= FEW) return [all];
  return [{ pages: FEW, text: t("first", { number: FEW, time: timeFor(FEW, survey.delay_s) }) }, all];
}

/** What a first crawl may take of a site. */
export type Scope = "host" | "prefix";

/** Which addresses belong to the crawl: those of its source, or the whole host, or the directory that was entered. */
export function scopeIn({ final_url, source_id }: Pick<Survey, "final_url" | "source_id">, scope: Scope): string {
  const { host } = new URL(final_url);
  if (source_id !== null) return t("asSource");
  return scope === "host" ? t("wholeHost", { host }) : t("onlyBelow", { part: partOf(final_url) });
}

/** Whether an address lies in a directory of its site. */
export function hasParts(url: string): boolean {
  return partOf(url) !== `${new URL(url).host}/`;
}

function partOf(url: string): string {
  const { host, pathname } = new URL(url);
  return host + pathname.slice(0, pathname.lastIndexOf("/") + 1);
}

/** What robots.txt says to this crawler, in a sentence. */
export function robotsIn({ robots }: Pick<Survey, "robots">): string {
  if (robots.answer === "allow_all") return t("noRobots");
  if (robots.forbidden === 0) return robots.judged === 1 ? t("allowsOne") : t("allowsAll", { number: robots.judged });
  return t("forbids", { number: robots.forbidden, count: robots.judged });
}

/** Whether a crawl requests an address; what its host's own robots.txt says is not known yet where it is null. */
export function isTaken(address: Pick<Address, "in_scope" | "allowed">): boolean {
  return address.in_scope && address.allowed !== false;
}

/** Say which rule decides about an address. */
export function reasonIn({ robots }: Pick<Survey, "robots">, address: Omit<Address, "url" | "found_in">): string {
  const { in_scope, allowed, reason, rule, line } = address;
  if (!in_scope) return (rule && ruleText(rule, false)) || reason;
  if (allowed === null) return t("ownRobots");
  const said = robotsText({ allowed, line, rule });
  if (said !== null) return said;
  if (allowed) return t(robots.answer === "allow_all" ? "allowedNone" : "allowed");
  return t(robots.answer === "rules" ? "robotsSlow" : "robotsUnread");
}

/** Say what a warning of the survey is about. */
export function warningIn(survey: Pick<Survey, "status" | "robots" | "content_type" | "requested_url" | "final_url" | "delay_s">, code: Survey["warning_codes"][number]): string {
  const { status, robots, content_type, requested_url, final_url } = survey;
  return t(`warning.${code}`, {
    status: String(status),
    seconds: robots.crawl_delay_s ?? survey.delay_s,
    type: content_type ?? t("unknownType"),
    typed: new URL(requested_url).hostname,
    host: new URL(final_url).hostname,
  });
}

/** Whether what was typed can be an address at all: a host has a dot, or a scheme stands before it. */
export function isLikeAddress(typed: string): boolean {
  return /[.:/]/.test(typed.trim());
}

/** Whether the server says that there is no page: another address is needed, and nothing is worth starting. */
export function isGone({ status }: Pick<Survey, "status">): boolean {
  return status === 404 || status === 410;
}
