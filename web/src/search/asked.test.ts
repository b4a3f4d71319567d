import { expect, test } from "vitest";
import { changed, readAsked } from "./asked";

test("what cannot be meant is left out", () => {
  expect(readAsked({ q: "  ", type: "evil", page: "-3", from: "yesterday", sort: "x" })).toEqual({});
  expect(readAsked({ q: 2020, page: "4", status: "4xx", to: "2026-01-02" })).toEqual({ q: "2020", page: 4, status: "4xx", to: "2026-01-02" });
});

test("another filter starts at the first page, another page keeps the filters", () => {
  const asked = readAsked({ q: "flu", page: 7, source: "hc" });
  expect(changed(asked, { type: "pdf" })).toEqual({ q: "flu", source: "hc", type: "pdf" });
  expect(changed(asked, { page: 8 })).toEqual({ q: "flu", source: "hc", page: 8 });
  expect(changed(asked, { source: undefined })).toEqual({ q: "flu" });
});
