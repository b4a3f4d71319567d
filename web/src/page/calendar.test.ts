import { expect, test } from "vitest";
import { readAskedPage } from "./asked";
import { daysOf, digits, dotSize, kept, mainClass, weeksOf, yearsBetween, type HistoryCapture } from "./calendar";

const capture = (at: string, status: number, isChange: boolean): HistoryCapture => ({
  snapshotId: 1, captureTimestamp: at, url: "https://example.org/", statusCode: status, mimeType: "text/html", recordType: "response", digest: null, change: isChange ? "updated" : "unchanged", isChange, noise: null, jobId: 1,
});

test("a month begins on its weekday, and a leap day is in it", () => {
  const february = weeksOf(2024, 2);
  expect(february[0]).toEqual([null, null, null, "2024-02-01", "2024-02-02", "2024-02-03", "2024-02-04"]);
  expect(february.flat().filter(Boolean).length).toBe(29);
  expect(weeksOf(2026, 2).length).toBe(5);
});

test("days count captures and changes; most captures give the colour", () => {
  const captures = [capture("2024-03-01T01:00:00Z", 200, true), capture("2024-03-01T02:00:00Z", 404, false), capture("2024-03-02T02:00:00Z", 503, false)];
  const days = daysOf(captures);
  expect(days.get("2024-03-01")).toMatchObject({ captures: 2, changes: 1, status: "2xx" });
  expect(days.get("2024-03-02")).toMatchObject({ captures: 1, changes: 0, status: "5xx" });
  expect(mainClass({ "4xx": 3, "2xx": 1 })).toBe("4xx");
  expect([...daysOf(kept(captures, "changes")).keys()]).toEqual(["2024-03-01"]);
  expect(kept(captures, "ok").length).toBe(1);
});

test("dots grow with captures and never leave their cell", () => {
  expect([1, 2, 4, 1000].map(dotSize)).toEqual([12, 15, 18, 22]);
});

test("years without captures stand between those that have some", () => {
  expect(yearsBetween([{ year: 2020, captures: 3 }, { year: 2022, captures: 1 }])).toEqual([{ year: 2020, captures: 3 }, { year: 2021, captures: 0 }, { year: 2022, captures: 1 }]);
  expect(yearsBetween([])).toEqual([]);
});

test("a moment has fourteen digits", () => {
  expect(digits("2024-03-01T12:04:05.678Z")).toBe("20240301120405");
});

test("what cannot be meant is left out of the address", () => {
  expect(readAskedPage({ url: " ", year: "12", view: "x", only: "evil", day: "today" })).toEqual({});
  expect(readAskedPage({ url: "https://example.org/", year: 2024, only: "changes", day: "2024-01-02" })).toEqual({ url: "https://example.org/", year: 2024, only: "changes", day: "2024-01-02" });
});
