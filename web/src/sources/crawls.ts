import type { Crawl } from "./useSource";

/** The crawls that a site is compared by: a poll of feeds asks for no site. One that the address names is there all the same. */
export function comparable<One extends Pick<Crawl, "jobId" | "isPoll">>(crawls: One[], ...chosen: (number | undefined)[]): One[] {
  return crawls.filter((one) => !one.isPoll || chosen.includes(one.jobId));
}

/** The crawl before this one that it is held against; undefined for the first, and for a poll of feeds. The newest comes first in the list. */
export function before<One extends Pick<Crawl, "jobId" | "isPoll">>(crawls: One[], crawl: One): One | undefined {
  return crawl.isPoll ? undefined : crawls.slice(crawls.indexOf(crawl) + 1).find((one) => !one.isPoll);
}

/** What a reader should know of a crawl before comparing with it, as the name of a sentence; null where it is a whole one. */
export function markOf(crawl: Pick<Crawl, "isPoll" | "isWhole">): "sources.crawlPoll" | "sources.crawlPart" | null {
  return crawl.isPoll ? "sources.crawlPoll" : crawl.isWhole ? null : "sources.crawlPart";
}
