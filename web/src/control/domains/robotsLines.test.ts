import { expect, test } from "vitest";
import { robotsLines } from "./robotsLines";

test("the line that decides is lit, whatever ends the lines", () => {
  const { lines } = robotsLines("\uFEFFUser-agent: *\r\nDisallow: /private\rAllow: /\n", 2);
  expect(lines.map((line) => line.text)).toEqual(["User-agent: *", "Disallow: /private", "Allow: /"]);
  expect(lines.filter((line) => line.isDeciding).map((line) => line.number)).toEqual([2]);
});

test("of a long file the lines around the deciding one are shown, with their own numbers", () => {
  const text = Array.from({ length: 5000 }, (_, at) => `Disallow: /${at + 1}`).join("\n");
  const { lines, all } = robotsLines(text, 3000, 400);
  expect([all, lines.length, lines.find((line) => line.isDeciding)?.text]).toEqual([5000, 400, "Disallow: /3000"]);
  expect(robotsLines(text, 4999, 400).lines.at(-1)?.number).toBe(5000);
  expect(robotsLines(text, null, 400).lines[0]?.number).toBe(1);
});

test("markup in a robots.txt is a line like others", () => {
  expect(robotsLines("<script>alert(1)</script>", null).lines[0]?.text).toBe("<script>alert(1)</script>");
});
