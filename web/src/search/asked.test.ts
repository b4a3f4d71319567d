import { expect, test } from "vitest";
import { addressIn, changed, exportPath, isLongAddress, isYear, readAsked, yearSpan } from "./asked";
import { nextPlace } from "./useKeys";

test("what cannot be meant is left out", () => {
  expect(readAsked({ q: "  ", type: "evil", page: "-3", from: "yesterday", to: "2026-02-30", sort: "x" })).toEqual({});
  expect(readAsked({ q: 2020, page: "4", status: "4xx", to: "2026-01-02" })).toEqual({ q: "2020", page: 4, status: "4xx", to: "2026-01-02" });
});

test("another filter starts at the first page, another page keeps the filters", () => {
  const asked = readAsked({ q: "flu", page: 7, source: "hc" });
  expect(changed(asked, { type: "pdf" })).toEqual({ q: "flu", source: "hc", type: "pdf" });
  expect(changed(asked, { page: 8 })).toEqual({ q: "flu", source: "hc", page: 8 });
  expect(changed(asked, { source: undefined })).toEqual({ q: "flu" });
});

test("what is taken away is what is asked, from its first page on", () => {
  expect(exportPath({ q: "flu & cold", page: 7, from: "2026-01-01" }, "wacz")).toBe("/api/search/export?q=flu+%26+cold&from=2026-01-01&view=pages&format=wacz");
});

test("a year is a span of days", () => {
  expect(isYear(yearSpan("2024"), "2024")).toBe(true);
  expect(isYear({ from: "2024-01-01" }, "2024")).toBe(false);
});

test("j and k go through the results and stay among them", () => {
  expect([nextPlace("j", -1, 3), nextPlace("j", 2, 3), nextPlace("k", 0, 3), nextPlace("k", 2, 3)]).toEqual([0, 2, 0, 1]);
  expect([nextPlace("ArrowDown", -1, 3), nextPlace("ArrowDown", 0, 3), nextPlace("x", 0, 3), nextPlace("j", -1, 0)]).toEqual([null, 1, null, null]);
});

test("an address that is too long to be looked for leads to its page", () => {
  const long = `https://example.org/${"a".repeat(300)}?q=%zz`;
  expect([isLongAddress(long), isLongAddress(long.slice(8)), isLongAddress(long.toUpperCase())]).toEqual([true, true, true]);
  expect([isLongAddress("https://example.org/"), isLongAddress("many words ".repeat(40)), isLongAddress(`${long} budget`)]).toEqual([false, false, false]);
});

test("the address in a question is what leads to a page through time", () => {
  expect(addressIn("url:http://a.example/?x=url:1")).toBe("http://a.example/?x=url:1");
  expect(addressIn(" a.example/b ")).toBe("a.example/b");
});
