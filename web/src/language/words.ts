import { en, type Word } from "./en";
import { fr } from "./fr";
import { numberFormat } from "./formats";

export type Language = "en" | "fr";
export const LANGUAGES: Record<Language, string> = { en: "English", fr: "Français" };
const PLURALS: Record<Language, Intl.PluralRules> = { en: new Intl.PluralRules("en"), fr: new Intl.PluralRules("fr") };
const CATALOGUES: Record<Language, Record<Word, string>> = { en, fr };

/** Return a sentence of the catalogue, filled in; `one|many` by the rules of the language. */
export function say(language: Language, word: Word, values: Record<string, string | number> = {}): string {
  const found = CATALOGUES[language][word];
  const [one = "", many = one] = found.split("|");
  const count = Number(values["count"]);
  const chosen = "count" in values && PLURALS[language].select(count) !== "one" ? many : one;
  return chosen.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    return typeof value === "number" ? numberFormat(language).format(value) : value;
  });
}

/** Return the language to start with: what was chosen, else what the browser asks for. */
export function startLanguage(chosen: string | null, asked: readonly string[]): Language {
  if (chosen === "en" || chosen === "fr") return chosen;
  return asked.some((one) => one.toLowerCase().startsWith("fr") && !asked[0]?.toLowerCase().startsWith("en")) ? "fr" : "en";
}
