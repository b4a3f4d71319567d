import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const CSS = readFileSync(new URL("./tokens.css", import.meta.url), "utf8");
/** Every block that sets the tokens: light, dark by the device, dark, high contrast. */
const THEMES = CSS.split(/\s color-scheme:/).slice(1).map((block) => Object.fromEntries([...block.split("}")[0]?.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6})/g) ?? []].map((found) => [found[1], found[2]])));
/** [text, ground, least]: 4.5 for text, 3 for borders of controls and what is drawn (WCAG 2.2, 1.4.3 and 1.4.11). */
const PAIRS: [string, string, number][] = [
  ["ink", "paper", 4.5], ["ink", "sheet", 4.5], ["ink", "sunk", 4.5], ["ink", "wash", 4.5], ["ink", "mark", 4.5],
  ["soft", "paper", 4.5], ["soft", "sheet", 4.5], ["soft", "sunk", 4.5],
  ["accent", "paper", 4.5], ["accent", "sheet", 4.5], ["accent", "wash", 4.5], ["accent", "sunk", 4.5], ["on-accent", "accent", 4.5],
  ["good", "good-wash", 4.5], ["warn", "warn-wash", 4.5], ["bad", "bad-wash", 4.5], ["bad", "sheet", 4.5], ["good", "sheet", 4.5], ["warn", "sheet", 4.5],
  ["edge", "sheet", 3], ["edge", "paper", 3],
];

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

test("every text can be read on every ground, in every theme", () => {
  expect(THEMES.length).toBe(4);
  for (const theme of THEMES) {
    for (const [text, ground, least] of PAIRS) {
      expect(theme[text], text).toBeDefined();
      expect(contrast(theme[text] ?? "", theme[ground] ?? ""), `${text} ${theme[text]} on ${ground} ${theme[ground]}`).toBeGreaterThanOrEqual(least);
    }
  }
});
