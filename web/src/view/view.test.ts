import { expect, test } from "vitest";
import { apart, spread, told } from "./apart";
import { readAskedView, wholeDigits } from "./asked";
import { apa, bibtex, type Cited } from "./cite";
import { isOfOneSite, isSameAddress, readTold } from "./messages";

const frame = {};
const message = (data: unknown, origin = "null", source: unknown = frame) => ({ data, origin, source });
const shown = { holdfast: "shown", url: "https://example.org/", digits: "20240301120000" };

test("only the window of the frame is listened to, and only as a page without an origin", () => {
  expect(readTold(message(shown), frame)).toEqual({ what: "shown", url: "https://example.org/", digits: "20240301120000" });
  expect(readTold(message(shown, "https://archive.example"), frame)).toBeNull();
  expect(readTold(message(shown, "null", {}), frame)).toBeNull();
  expect(readTold(message(shown, "null", null), null)).toBeNull();
});

test("a message that is none of ours is passed over", () => {
  for (const data of [null, 7, "x", {}, { ...shown, holdfast: "evil" }, { ...shown, url: "javascript:alert(1)" }, { ...shown, url: 4 }, { ...shown, digits: "x" }, { ...shown, url: `https://e/${"x".repeat(9000)}` }]) {
    expect(readTold(message(data), frame)).toBeNull();
  }
});

test("a fragment and a slash at the end make no other address", () => {
  expect(isSameAddress("https://example.org/a#b", "https://example.org/a/")).toBe(true);
  expect(isSameAddress("https://example.org/a", "https://example.org/A")).toBe(false);
});

test("a moment in the path may be short", () => {
  expect(wholeDigits("2024")).toBe("20241231235959");
  expect(wholeDigits("20240301120000")).toBe("20240301120000");
  expect(wholeDigits("latest")).toBeUndefined();
  expect(readAskedView({ url: "  ", mode: "page" })).toEqual({});
  expect(readAskedView({ url: "https://e/", mode: "renderer" })).toEqual({ url: "https://e/", mode: "renderer" });
  expect(readAskedView({ url: "https://e/", mode: "parts" })).toEqual({ url: "https://e/", mode: "parts" });
});

const cited: Cited = { title: "Tides & {waves} 100%", url: "https://example.org/a_b", captureTimestamp: "2024-03-01T12:00:00Z", sourceName: "Marsh Station", permalink: "https://replay.example/web/20240301120000/https://example.org/a_b?x=1&y={2}", digest: "sha256:ab", recordId: "urn:uuid:1" };

test("a citation names page, place and moment", () => {
  expect(apa(cited, new Date("2026-05-06T00:00:00Z"))).toBe(`Marsh Station. (2024, March 1). Tides & {waves} 100%. Archived copy of https://example.org/a_b, retrieved May 6, 2026, from ${cited.permalink}`);
});

test("what means something to TeX is escaped, so that no title breaks the entry", () => {
  const entry = bibtex(cited);
  expect(entry).toContain("title = {{Tides \\& \\{waves\\} 100\\%}}");
  expect(entry).toContain("url = {https://replay.example/web/20240301120000/https://example.org/a_b?x=1\\&y=\\%7B2\\%7D}");
  expect(entry.startsWith("@misc{exampleorg-2024-03-01,")).toBe(true);
});

test("how far parts lie apart is told in the unit that fits", () => {
  expect(apart(-3)).toEqual({ value: 3, unit: "second" });
  expect(apart(7200)).toEqual({ value: 2, unit: "hour" });
  expect(apart(864_000)).toEqual({ value: 10, unit: "day" });
  expect(spread(-60, 30)).toBe(90);
  expect(spread(10, 30)).toBe(30);
  expect(spread(null, null)).toBe(0);
  expect(told(7200, "en")).toBe("2 hours");
  expect(told(7200, "fr")).toMatch(/^2\sheures$/);
});

test("hosts of one owner are of one site; addresses of machines and local names are not", () => {
  expect(isOfOneSite("archive.example.org", "replay.example.org")).toBe(true);
  expect(isOfOneSite("archive.example.org", "replay.example.net")).toBe(false);
  expect(isOfOneSite("127.0.0.1", "replay.localhost")).toBe(false);
  expect(isOfOneSite("app.localhost", "replay.localhost")).toBe(false);
  expect(isOfOneSite("10.0.0.1", "11.0.0.1")).toBe(false);
});
