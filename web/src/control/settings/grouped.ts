import { t } from "@/language/control/settings";
import { frSettings } from "@/language/frSettings";
import { spoken } from "@/language/spoken";
import type { Setting } from "./useSettings";

export interface SettingGroup {
  name: string;
  settings: Setting[];
}

/** The first words of names that few settings have: these are in one group. */
const GENERAL = "general";

/** What a setting is for, and the language of that sentence: a setting without French is described in the server's English. */
export function descriptionOf({ name, description }: Pick<Setting, "name" | "description">): { text: string; lang: "en" | "fr" } {
  const french = spoken.language === "fr" ? frSettings[name.replace(/^HOLDFAST_/, "")] : undefined;
  return french === undefined ? { text: description, lang: "en" } : { text: french, lang: "fr" };
}

/** Whether a setting has all the words that are looked for, in its name, value or description. */
function has(setting: Setting, words: readonly string[]): boolean {
  const text = `${setting.name} ${String(setting.value ?? "")} ${descriptionOf(setting).text}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Return what was changed, in the order of the server, and all settings in groups by the first word of their name; a word that begins no other name is general. */
export function grouped(settings: readonly Setting[], search: string): { changed: Setting[]; groups: SettingGroup[] } {
  const counts = new Map<string, number>();
  const firstWord = (one: Setting) => one.name.replace(/^HOLDFAST_/, "").split("_")[0] ?? "";
  for (const one of settings) counts.set(firstWord(one), (counts.get(firstWord(one)) ?? 0) + 1);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = settings.filter((one) => has(one, words));
  const groups = new Map<string, Setting[]>();
  for (const one of found) {
    const word = firstWord(one);
    const name = (counts.get(word) ?? 0) > 1 ? word : GENERAL;
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  const order = (name: string) => (name === GENERAL ? "" : groupName(name));
  return {
    changed: found.filter((one) => one.origin !== "default"),
    groups: [...groups].map(([name, list]) => ({ name, settings: list })).sort((a, b) => order(a.name).localeCompare(order(b.name))),
  };
}

/** Name a group of settings; one that no catalogue knows is named by its word. */
export function groupName(name: string): string {
  return `group.${name}` in t.en ? t.of("group", name) : `${name.charAt(0)}${name.slice(1).toLowerCase()}`;
}
