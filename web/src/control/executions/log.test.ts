import { expect, test } from "vitest";
import { fieldsOf, KEPT, linesSince, shownLines, withLines, type LogEntry } from "./log";

let number = 0;
const line = (message: string, level = "info", fields: Record<string, unknown> = {}): LogEntry => ({ id: ++number, schema_version: 1, timestamp: "2026-11-15T12:00:00Z", level, category: "crawler.fetch", message, job_id: 1, execution_id: 2, fields });

test("the oldest lines make room", () => {
  const many = Array.from({ length: KEPT }, (_, at) => line(String(at)));

  const kept = withLines(many, [line("new")]);

  expect(kept).toHaveLength(KEPT);
  expect(kept.at(-1)?.message).toBe("new");
  expect(kept[0]?.message).toBe("1");
});

test("a line that is told again stands once", () => {
  const [first, second] = [line("first"), line("second")];

  expect(withLines([first], [first, second])).toEqual([first, second]);
});

test("new lines are counted though as many old ones went", () => {
  const held = Array.from({ length: KEPT }, (_, at) => line(String(at)));

  expect(linesSince(withLines(held, [line("a"), line("b")]), held)).toBe(2);
  expect(linesSince(held, held)).toBe(0);
});

test("a level and words choose lines; words are found in fields too", () => {
  const lines = [line("asked", "debug"), line("slow", "warning", { url: "https://ex.example/A" }), line("broken", "error")];

  expect(shownLines(lines, "warning", "").map((one) => one.message)).toEqual(["slow", "broken"]);
  expect(shownLines(lines, "debug", "EX.example/a slow").map((one) => one.message)).toEqual(["slow"]);
});

test("a level that nobody knows is shown, and a hostile field stays text", () => {
  const odd = line("odd", "fatal", { name: "<img src=x onerror=alert(1)>", n: 3 });

  expect(shownLines([odd], "error", "")).toEqual([odd]);
  expect(fieldsOf(odd)).toBe("name=<img src=x onerror=alert(1)> n=3");
});
