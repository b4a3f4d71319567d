import { expect, test } from "vitest";
import { before, comparable, markOf } from "./crawls";

const crawl = (jobId: number, isPoll = false, isWhole = !isPoll) => ({ jobId, isPoll, isWhole });
const LISTED = [crawl(9, true), crawl(8), crawl(7, true), crawl(5, false, false)];

test("a site is compared by its crawls, not by polls of its feeds", () => {
  expect(comparable(LISTED).map((one) => one.jobId)).toEqual([8, 5]);
  expect(comparable(LISTED, 7, undefined).map((one) => one.jobId)).toEqual([8, 7, 5]);
  expect(LISTED.map((one) => before(LISTED, one)?.jobId)).toEqual([undefined, 5, undefined, undefined]);
});

test("what is no whole crawl says so", () => {
  expect(LISTED.map(markOf)).toEqual(["sources.crawlPoll", null, "sources.crawlPoll", "sources.crawlPart"]);
});
