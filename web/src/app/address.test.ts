import { expect, test } from "vitest";
import { readAsked } from "@/search/asked";
import { readSearch, writeSearch } from "./address";

test("what is asked comes back as it was, whatever else it could mean", () => {
  for (const q of ['"ebb and flow"', "2020", "1e5", "true", "null", "{}", "a+b & c=d", "été ?", "100 %"]) {
    expect(readSearch(writeSearch({ q }))).toEqual({ q });
    expect(readAsked(readSearch(writeSearch({ q })))).toEqual({ q });
  }
});

test("an address is short: nothing for what is not asked, no signs around numbers", () => {
  expect(writeSearch({})).toBe("");
  expect(writeSearch({ q: undefined, page: 2, source: "2020" })).toBe("?page=2&source=2020");
  expect(readAsked(readSearch("?q=tide&page=3&similarTo=7"))).toEqual({ q: "tide", page: 3, similarTo: 7 });
});
