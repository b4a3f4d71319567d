import { expect, test } from "vitest";
import { farOf, problemsOf, resultOf } from "./told";

test("large amounts are bytes, small ones are counted, nothing divides by nothing", () => {
  expect(farOf({ phase: "verifying", done: 734003200, total: 4294967296 })).toBe("verifying: 734 MB of 4.3 GB (17 %)");
  expect(farOf({ phase: "indexing", done: 3, total: 8 })).toBe("indexing: 3 of 8 (37 %)");
  expect(farOf({ phase: null, done: 0, total: null })).toBe("waiting to start");
  expect(farOf({ phase: "reading", done: 0, total: 0 })).toBe("reading");
  expect(farOf({ phase: "reading: a:b.warc.gz", done: 0, total: null })).toBe("reading: a:b.warc.gz");
});

test("a result is told in lines, its lists are counted", () => {
  expect(resultOf({ imported: 2, bytes: 1500, holds: true, frozenAt: "2026", problems: [], files: [{}], counts: { new_pages: 3 }, execution: null })).toEqual([
    ["imported", "2"], ["bytes", "1.5 KB"], ["holds", "yes"], ["frozen at", "2026"], ["files", "1 entry"], ["counts: new pages", "3"],
  ]);
});

test("problems of all shapes are lines of text", () => {
  expect(problemsOf({ problems: [{ file: 4, name: "a.warc.gz", kind: "digest", detail: "differs" }], errors: [{ file: 5, error: "gone" }], files: [{ name: "b", notes: ["cut"], error: null }] })).toEqual(["a.warc.gz: differs", "file 5: gone", "b: cut"]);
});
