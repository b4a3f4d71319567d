import { expect, test } from "vitest";
import { among, day, text, tidy, whole } from "./asked";

test("what the router has read as something else is text again", () => {
  expect([text(2020), text(true), text(" "), text("a"), text({})]).toEqual(["2020", "true", undefined, "a", undefined]);
});

test("what cannot be meant is left out", () => {
  expect([whole("7"), whole(""), whole(-1), whole("x"), whole(1.5), whole(true)]).toEqual([7, undefined, undefined, undefined, undefined, undefined]);
  expect([day("2026-11-17"), day("17.11."), among("b", ["a", "b"]), among("c", ["a", "b"])]).toEqual(["2026-11-17", undefined, "b", undefined]);
  expect(tidy({ a: undefined, b: "", c: 0, d: "x" })).toEqual({ c: 0, d: "x" });
});
