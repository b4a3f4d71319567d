import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { en } from "./en";
import { fr } from "./fr";
import { french } from "./french";
import { frSyntax } from "./frSyntax";
import { loadRooms } from "./room";
import { speakOutside } from "./spoken";
import { localeOf, say, startLanguage, writtenDate } from "./words";

test("every sentence has the same holes in both languages", () => {
  for (const [word, sentence] of Object.entries(en)) {
    const holes = (text: string) => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort();
    expect(holes(fr[word as keyof typeof en]), word).toEqual(holes(sentence));
  }
});

test("no sentence is in the catalogue that nobody says", () => {
  const sources = new URL("..", import.meta.url);
  const files = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter((path) => /\.tsx?$/.test(path) && !path.startsWith("language") && !path.endsWith(".d.ts"));
  const code = files.map((path) => readFileSync(new URL(path, sources), "utf8")).join("\n");
  const begun = [...code.matchAll(/`([a-zA-Z.]+\.)\$\{/g)].map((found) => found[1] ?? "");

  expect(Object.keys(en).filter((word) => !code.includes(`"${word}"`) && !begun.some((begin) => word.startsWith(begin)))).toEqual([]);
});

test("one and many follow the rules of the language", () => {
  expect(say("en", "search.results", { count: 0 })).toBe("0 results");
  expect(say("fr", "search.results", { count: 0 })).toBe("0 résultat");
  expect(say("en", "search.results", { count: 1 })).toBe("1 result");
  expect(say("en", "search.results", { count: 12345 })).toBe("12,345 results");
});

test("a French sign stays with the word before it", () => {
  expect(say("fr", "page.which")).toBe("Quelle page\u00a0?");
  expect(say("en", "page.which")).toBe("Which page?");
});

test("a value that holds a hole is not filled in again", () => {
  expect(say("en", "search.remove", { name: "{name}" })).toBe("Remove {name}");
});

test("the language that was chosen wins over what the browser asks for", () => {
  expect(startLanguage("fr", ["en-GB"])).toBe("fr");
  expect(startLanguage(null, ["fr-CA", "en"])).toBe("fr");
  expect(startLanguage(null, ["en", "fr"])).toBe("en");
  expect(startLanguage(null, ["de", "en-GB", "fr"])).toBe("en");
  expect(startLanguage(null, ["de", "fr"])).toBe("fr");
  expect(startLanguage("xx", ["de"])).toBe("en");
});

test("dates are written as the reader's country does", () => {
  const day = (asked: string[]) => writtenDate(localeOf("en", asked), "2026-11-17T10:00:00Z", { dateStyle: "medium", timeZone: "UTC" });
  expect(day(["en-GB", "en-US"])).toBe("17 Nov 2026");
  expect(day(["en-US"])).toBe("Nov 17, 2026");
  expect(day(["de-DE", "fr-CA"])).toBe("Nov 17, 2026");
});

test("the language that was chosen decides, and a name that no standard knows is passed over", () => {
  expect(localeOf("fr", ["en-GB", "fr-CA"])).toBe("fr-CA");
  expect(localeOf("fr", ["en-GB"])).toBe("fr");
  expect(localeOf("en", ["en-US@posix", "en-GB"])).toBe("en-GB");
});

test("the help of the query language marks what is typed in pairs", () => {
  for (const [name, meaning] of Object.entries(frSyntax)) expect(meaning.split("`").length % 2, name).toBe(1);
});

const rooms = Object.entries(import.meta.glob<{ en: Record<string, string> }>("./control/*.ts", { eager: true, import: "t" })).map(([path, { en: english }]) => ({ name: path.replace(/.*\/|\.ts/g, ""), english }));

test("every part of the control room says the same in both languages", () => {
  expect(Object.keys(french).sort()).toEqual(rooms.map(({ name }) => name).sort());
  for (const { name, english } of rooms) {
    const holes = (text = "") => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort();
    expect(Object.keys(french[name] ?? {}).sort(), name).toEqual(Object.keys(english).sort());
    for (const [key, sentence] of Object.entries(english)) {
      expect(french[name]?.[key]?.trim(), `${name} ${key}`).toBeTruthy();
      expect(holes(french[name]?.[key]), `${name} ${key}`).toEqual(holes(sentence));
    }
  }
});

test("a part of the control room speaks French once that is loaded", async () => {
  const { t } = await import("./control/common");
  speakOutside("fr");
  expect(t("close")).toBe("Close");
  await loadRooms();
  expect([t("close"), t.of("list", "unknown_word")]).toEqual(["Fermer", "unknown word"]);
  speakOutside("en");
});
