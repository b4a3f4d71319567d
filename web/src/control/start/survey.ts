import type { components } from "@/api/schema";
import { count, counted, duration } from "../charts/format";

export type Survey = components["schemas"]["SiteSurvey"];
export type Address = Survey["addresses"][number];

/** A first crawl of a large or unknown site takes so many pages, unless the operator wants all of them. */
export const FEW = 500;

/** How many pages there are, as far as a sitemap says so. */
export function pagesIn(survey: Pick<Survey, "page_count" | "page_count_is_exact" | "linked_pages" | "robots">): string {
  if (survey.page_count === null) return `Unknown: the site has no sitemap. Its first page links to ${counted(survey.linked_pages, "page")}.`;
  const isSample = survey.robots.forbidden > 0 && survey.robots.judged < survey.page_count;
  const known = `${survey.page_count_is_exact ? "" : isSample ? "About " : "At least "}${count(survey.page_count)}, by its sitemap and first page`;
  return survey.robots.forbidden > 0 ? `${known}, without those that robots.txt forbids` : known;
}

/** How long the pages take at the pace of the crawl. */
export function timeFor(pages: number, delayS: number): string {
  return duration(Math.max(1, pages * delayS));
}

/** What the first crawl may be limited to; the first one is chosen unless the operator says otherwise. */
export function amountsOf(survey: Pick<Survey, "page_count" | "page_count_is_exact" | "delay_s">): { pages: number | null; text: string }[] {
  const known = survey.page_count;
  const whole = known === null ? "The whole site" : `The whole site (${survey.page_count_is_exact ? "" : "at least "}${timeFor(known, survey.delay_s)})`;
  const all = { pages: null, text: whole };
  if (known !== null && survey.page_count_is_exact && known <= FEW) return [all];
  return [{ pages: FEW, text: `The first ${count(FEW)} pages (${timeFor(FEW, survey.delay_s)})` }, all];
}

/** Which addresses belong to the crawl: a part of a site that was typed is only where it begins. */
export function scopeIn({ final_url, source_id }: Pick<Survey, "final_url" | "source_id">): string {
  const { host, pathname } = new URL(final_url);
  if (source_id !== null) return "As the source of this site says.";
  return `The whole of ${host}${pathname === "/" ? "" : "; the address that you entered is where the crawl begins"}.`;
}

/** What robots.txt says to this crawler, in a sentence. */
export function robotsIn({ robots }: Pick<Survey, "robots">): string {
  if (robots.answer === "allow_all") return "The site has no robots.txt: everything may be crawled.";
  if (robots.forbidden === 0) return `Allows ${robots.judged === 1 ? "the address" : `all ${count(robots.judged)} addresses`} checked.`;
  return `Forbids ${count(robots.forbidden)} of ${counted(robots.judged, "address", "addresses")} checked.`;
}

/** Whether a crawl requests an address; what its host's own robots.txt says is not known yet where it is null. */
export function isTaken(address: Pick<Address, "in_scope" | "allowed">): boolean {
  return address.in_scope && address.allowed !== false;
}
