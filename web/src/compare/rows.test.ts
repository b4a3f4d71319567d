import { expect, test } from "vitest";
import { readAskedComparison } from "./asked";
import { marksOf, pairsOf, placesOf } from "./rows";

const row = (type: string, text: string) => ({ type, parts: [{ type: "same", text }] });

test("lines that went stand beside lines that came", () => {
  const pairs = pairsOf({ fromLine: 4, toLine: 9, fromCount: 3, toCount: 2, lines: [row("context", "a"), row("removed", "b"), row("removed", "c"), row("added", "d"), row("context", "e")] });
  expect(pairs.map((pair) => [pair.before?.number ?? null, pair.after?.number ?? null, pair.isChange])).toEqual([[4, 9, false], [5, 10, true], [6, null, true], [7, 11, false]]);
});

test("ids that cannot be are left out", () => {
  expect(readAskedComparison({ to: "12", from: "-1", view: "evil" })).toEqual({ to: 12 });
  expect(readAskedComparison({ to: 3, by: "lines", text: "full", only: "changes" })).toEqual({ to: 3, by: "lines", text: "full", only: "changes" });
  expect(readAskedComparison({ to: "1e99", from: 3, view: "unified" })).toEqual({ from: 3, view: "unified" });
});

test("the map shows how far down a change is, and never leaves its frame", () => {
  const hunk = (toLine: number, toCount: number) => ({ fromLine: toLine, toLine, fromCount: 1, toCount, lines: [] });
  const marks = marksOf([hunk(1, 2), hunk(50, 10), hunk(99, 1)]);
  expect(marks[0]).toEqual({ top: 0, height: 2 });
  expect(marks[1]).toEqual({ top: 49, height: 10 });
  expect(marks.every((one) => one.top + one.height <= 100)).toBe(true);
});

test("changes that lie close together are counted one by one", () => {
  const lines = [row("context", "a"), row("removed", "b"), row("added", "c"), row("context", "d"), row("added", "e"), row("context", "f"), row("removed", "g")];
  const places = placesOf({ fromLine: 4, toLine: 9, fromCount: 5, toCount: 5, lines });
  expect(places).toEqual([
    { fromLine: 5, toLine: 10, fromCount: 1, toCount: 1 },
    { fromLine: 7, toLine: 12, fromCount: 0, toCount: 1 },
    { fromLine: 8, toLine: 14, fromCount: 1, toCount: 0 },
  ]);
});
