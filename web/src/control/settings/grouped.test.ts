import { afterEach, expect, test } from "vitest";
import { speakOutside } from "@/language/spoken";
import { descriptionOf, groupName, grouped } from "./grouped";
import type { Setting } from "./useSettings";

afterEach(() => { speakOutside("en"); });

const setting = (name: string, origin: Setting["origin"] = "default", description = ""): Setting => ({ name, origin, description, value: 1, isSecret: false }) as Setting;
const ALL = [setting("HOLDFAST_HOME", "command", "The data directory"), setting("HOLDFAST_API_PORT"), setting("HOLDFAST_API_HOST", "environment"), setting("HOLDFAST_FETCH_DEADLINE_S"), setting("HOLDFAST_FETCH_BODY_BYTES")];
const shape = (search: string) => {
  const { changed, groups } = grouped(ALL, search);
  return [changed.map((one) => one.name), groups.map(({ name, settings }) => [groupName(name), settings.length])];
};

test("changed settings come first, all of them in groups", () => {
  expect(shape("")).toEqual([["HOLDFAST_HOME", "HOLDFAST_API_HOST"], [["General", 1], ["API and pages", 2], ["Fetch", 2]]]);
});

test("a filter finds words of the name and of the description", () => {
  expect(shape("DATA directory")).toEqual([["HOLDFAST_HOME"], [["General", 1]]]);
  expect(shape("fetch deadline")).toEqual([[], [["Fetch", 1]]]);
  expect(shape("nothing like it")).toEqual([[], []]);
});

test("a setting is described in the language of the page, and found by it", () => {
  speakOutside("fr");
  expect(descriptionOf(setting("HOLDFAST_API_PORT", "default", "Port"))).toEqual({ text: "Port d’écoute\u00a0; 0 laisse choisir le système.", lang: "fr" });
  expect(descriptionOf(setting("HOLDFAST_NEWER", "default", "Newer"))).toEqual({ text: "Newer", lang: "en" });
  expect(grouped(ALL, "écoute").groups.map(({ settings }) => settings.length)).toEqual([2]);
});
