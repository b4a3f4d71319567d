import { en, type Word } from "./en";
import { fr } from "./fr";

export type Language = "en" | "fr";
export const LANGUAGES: Record<Language, string> = { en: "English", fr: "Français" };
const CATALOGUES: Record<Language, Record<Word, string>> = { en, fr: unbroken(fr) };

const numbers = new Map<Language, Intl.NumberFormat>();
const plurals = new Map<Language, Intl.PluralRules>();
const dates = new Map<string, Intl.DateTimeFormat>();

function held<Key, Made>(kept: Map<Key, Made>, key: Key, make: () => Made): Made {
  const found = kept.get(key) ?? make();
  kept.set(key, found);
  return found;
}

/** No line of French begins with a sign that belongs to the word before it. */
function unbroken(catalogue: Record<Word, string>): Record<Word, string> {
  return Object.fromEntries(Object.entries(catalogue).map(([word, sentence]) => [word, sentence.replace(/ (?=[:;?!»])/g, "\u00a0")])) as Record<Word, string>;
}

/** Write a number; the rules of a language are read once, for a page has hundreds of them. */
export function writtenNumber(language: Language, value: number): string {
  return held(numbers, language, () => new Intl.NumberFormat(language)).format(value);
}

/** Write a moment as `options` say. */
export function writtenDate(language: Language, moment: string | Date, options: Intl.DateTimeFormatOptions): string {
  return held(dates, `${language} ${JSON.stringify(options)}`, () => new Intl.DateTimeFormat(language, options)).format(new Date(moment));
}

/** Return a sentence of the catalogue, filled in; `one|many` by the rules of the language. */
export function say(language: Language, word: Word, values: Record<string, string | number> = {}): string {
  const found = CATALOGUES[language][word];
  const [one = "", many = one] = found.split("|");
  const count = Number(values["count"]);
  const chosen = "count" in values && held(plurals, language, () => new Intl.PluralRules(language)).select(count) !== "one" ? many : one;
  return chosen.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    return typeof value === "number" ? writtenNumber(language, value) : value;
  });
}

/** Return the language to start with: what was chosen, else what the browser asks for. */
export function startLanguage(chosen: string | null, asked: readonly string[]): Language {
  if (chosen === "en" || chosen === "fr") return chosen;
  const first = asked.map((one) => one.toLowerCase().split("-")[0]).find((one) => one === "en" || one === "fr");
  return first === "fr" ? "fr" : "en";
}
