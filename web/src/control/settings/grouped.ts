import type { Setting } from "./useSettings";

export interface SettingGroup {
  name: string;
  settings: Setting[];
}

/** The settings that several words stand for; the rest are under their first word. */
const GENERAL = "General";
const TITLES: Record<string, string> = { API: "API and pages", AUTH: "Accounts", WARC: "WARC files", ZIMIT: "Zimit" };

/** Whether a setting has all the words that are looked for, in its name, value or description. */
function has(setting: Setting, words: readonly string[]): boolean {
  const text = `${setting.name} ${String(setting.value ?? "")} ${setting.description}`.toLowerCase();
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
    const name = (counts.get(word) ?? 0) > 1 ? (TITLES[word] ?? `${word.charAt(0)}${word.slice(1).toLowerCase()}`) : GENERAL;
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  const order = (name: string) => (name === GENERAL ? "" : name);
  return {
    changed: found.filter((one) => one.origin !== "default"),
    groups: [...groups].map(([name, list]) => ({ name, settings: list })).sort((a, b) => order(a.name).localeCompare(order(b.name))),
  };
}
