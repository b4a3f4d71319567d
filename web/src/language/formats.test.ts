import { expect, test } from "vitest";
import { dateFormat, localeOf } from "./formats";

test("dates are written as the reader's country does", () => {
  const day = (asked: string[]) => dateFormat(localeOf("en", asked), { dateStyle: "medium", timeZone: "UTC" }).format(new Date("2026-11-17T10:00:00Z"));
  expect(day(["en-GB", "en-US"])).toBe("17 Nov 2026");
  expect(day(["en-US"])).toBe("Nov 17, 2026");
  expect(day(["de-DE", "fr-CA"])).toBe("Nov 17, 2026");
});

test("the language that was chosen decides, and a name that no standard knows is passed over", () => {
  expect(localeOf("fr", ["en-GB", "fr-CA"])).toBe("fr-CA");
  expect(localeOf("fr", ["en-GB"])).toBe("fr");
  expect(localeOf("en", ["en-US@posix", "en-GB"])).toBe("en-GB");
});

test("a format is made once", () => {
  expect(dateFormat("en", { dateStyle: "medium" })).toBe(dateFormat("en", { dateStyle: "medium" }));
  expect(dateFormat("en", { dateStyle: "medium" })).not.toBe(dateFormat("en", { dateStyle: "long" }));
});
