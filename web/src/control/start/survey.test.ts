import { expect, test } from "vitest";
import { readAskedStart } from "./asked";
import { isGone, isLikeAddress, amountsOf, hasParts, isTaken, pagesIn, reasonIn, robotsIn, scopeIn, warningIn } from "./survey";

const robots = { url: "", status: 200, answer: "rules" as const, lines: [], lines_left_out: 0, crawl_delay_s: null, judged: 20, forbidden: 0 };
const few = { robots, page_count: 12, page_count_is_exact: true, linked_pages: 3, delay_s: 2 };

test("the number of pages says how sure it is", () => {
  expect(pagesIn(few)).toBe("12, by its sitemap and first page");
  expect(pagesIn({ ...few, page_count: 100_000, page_count_is_exact: false })).toBe("At least 100,000, by its sitemap and first page");
  const half = { ...robots, judged: 300, forbidden: 150 };
  expect(pagesIn({ ...few, page_count: 25_000, page_count_is_exact: false, robots: half })).toBe("About 25,000, by its sitemap and first page, without those that robots.txt forbids");
  expect(pagesIn({ ...few, page_count: null })).toBe("Unknown: the site has no sitemap. Its first page links to 3 pages.");
});

test("a small site is crawled whole, a large or unknown one in part first", () => {
  expect(amountsOf(few)).toEqual([{ pages: null, text: "The whole site (24 s)" }]);
  expect(amountsOf({ ...few, page_count: 90_000 }).map(({ pages }) => pages)).toEqual([500, null]);
  expect(amountsOf({ ...few, page_count: null })).toEqual([{ pages: 500, text: "The first 500 pages (16 min 40 s)" }, { pages: null, text: "The whole site" }]);
  expect(amountsOf({ ...few, page_count_is_exact: false })[1]?.text).toBe("The whole site (at least 24 s)");
});

test("what robots.txt forbids is counted", () => {
  expect(robotsIn({ robots: { ...robots, forbidden: 2 } })).toBe("Forbids 2 of 20 addresses checked.");
  expect(robotsIn({ robots })).toBe("Allows all 20 addresses checked.");
  expect(robotsIn({ robots: { ...robots, answer: "allow_all" } })).toContain("no robots.txt");
});

test("a part of a site can be crawled alone, and a source decides by itself", () => {
  expect(scopeIn({ final_url: "https://example.org/", source_id: null }, "host")).toBe("The whole of example.org.");
  expect(scopeIn({ final_url: "https://example.org/ja/a.html", source_id: null }, "prefix")).toBe("Only example.org/ja/ and what lies below.");
  expect(scopeIn({ final_url: "https://example.org/", source_id: 3 }, "prefix")).toContain("source");
  expect(["https://example.org/", "https://example.org/a.html", "https://example.org/ja/"].map(hasParts)).toEqual([false, false, true]);
});

test("an address is taken if it is in scope and not forbidden", () => {
  expect([isTaken({ in_scope: true, allowed: null }), isTaken({ in_scope: true, allowed: false }), isTaken({ in_scope: false, allowed: null })]).toEqual([true, false, false]);
});

test("the address bar names the job of the crawl, and nothing else", () => {
  expect(readAskedStart({ job: "7" })).toEqual({ job: 7 });
  expect(readAskedStart({ job: "-1", x: 1 })).toEqual({});
});

test("a word is not an address, and a missing page is nothing to crawl", () => {
  expect([isLikeAddress("nonsense"), isLikeAddress("example.org"), isLikeAddress("http://wiki")]).toEqual([false, true, true]);
  expect([isGone({ status: 404 }), isGone({ status: 410 }), isGone({ status: 200 }), isGone({ status: null })]).toEqual([true, true, false, false]);
});

test("each address has the rule that decides", () => {
  const one = { in_scope: true, allowed: true, reason: "as the server says", rule: null, line: null };
  const said = (address: Partial<Parameters<typeof reasonIn>[1]>, answer: "rules" | "allow_all" | "unreachable" = "rules") => reasonIn({ robots: { ...robots, answer } }, { ...one, ...address });
  expect([said({}), said({}, "allow_all"), said({ allowed: null })]).toEqual(["in scope, and robots.txt has no rule against it", "in scope, and the site has no robots.txt", "its host has its own robots.txt, which the crawl reads first"]);
  expect([said({ allowed: false, line: 2, rule: "Disallow: /a" }), said({ allowed: false }, "unreachable")]).toEqual(["line 2 forbids it: Disallow: /a", "robots.txt cannot be read"]);
  expect([said({ in_scope: false, rule: "scope:host" }), said({ in_scope: false, rule: "exclude:/a:b" }), said({ in_scope: false, rule: "url_refused" })]).toEqual(["it is not on the host of a seed", "the rule exclude /a:b matches", "as the server says"]);
});

test("a warning names the facts of the survey", () => {
  const survey = { status: 403, robots: { ...robots, crawl_delay_s: 60 }, content_type: null, requested_url: "https://a.example/", final_url: "https://b.example/", delay_s: 1 };
  expect([warningIn(survey, "refused"), warningIn(survey, "other_site")]).toEqual(["The site refuses our crawler (status 403); ask its owner for access before you crawl it.", "a.example leads to another site, b.example; that one would be crawled."]);
  expect(warningIn(survey, "long_delay")).toContain("60 s");
});
