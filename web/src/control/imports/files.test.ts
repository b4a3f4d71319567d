import { expect, test } from "vitest";
import { codeOf, isArchiveName, isCode } from "./files";

test("archives are known by their names", () => {
  expect(["a.warc", "a.WARC.GZ", "b.wacz", "c.zip", "warc", "a.warc.gz.part"].map(isArchiveName)).toEqual([true, true, true, false, false, false]);
});

test("a name becomes a code that the server takes", () => {
  expect(["Crawl 2024 (Été).warc.gz", "___.warc", "a-very-long-name-of-a-file-of-a-town.wacz"].map(codeOf)).toEqual(["crawl-2024-e-te", "", "a-very-long-name-of-a-file-of-a"]);
  expect(["hc", "a-b", "-a", "A", "", "a".repeat(40), "a".repeat(41)].map(isCode)).toEqual([true, true, false, false, false, true, false]);
});
