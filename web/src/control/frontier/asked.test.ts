import { expect, test } from "vitest";
import { pasted, readAskedFrontier } from "./asked";

test("filters are read, what cannot be meant is left out", () => {
  expect(readAskedFrontier({ execution: "12", status: "failed", kind: "feed", search: 2020, domain: "" })).toEqual({ execution: 12, status: "failed", search: "2020" });
});

test("addresses are pasted in any way, none counts twice", () => {
  expect(pasted("https://a.org/\r\n https://b.org/x, https://a.org/\n\n")).toEqual(["https://a.org/", "https://b.org/x"]);
});
