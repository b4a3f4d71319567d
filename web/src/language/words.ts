import { en, type Word } from "./en";
import { fr } from "./fr";

export type Language = "en" | "fr";
export const LANGUAGES: Record<Language, string> = { en: "English", fr: "Français" };
const CATALOGUES: Record<Language, Record<Word, string>> = { en, fr: unbroken(fr) };

const numbers = new Map<string, Intl.NumberFormat>();
const plurals = new Map<Language, Intl.PluralRules>();
const dates = new Map<string, Intl.DateTimeFormat>();

function held<Key, Made>(kept: Map<Key, Made>, key: Key, make: () => Made): Made {
  const found = kept.get(key) ?? make();
  kept.set(key, found);
  return found;
}

/** No line of French begins with a sign that belongs to the word before it. */
export function unbroken<Key extends string>(catalogue: Record<Key, string>): Record<Key, string> {
  return Object.fromEntries(Object.entries<string>(catalogue).map(([word, sentence]) => [word, sentence.replace(/ (?=[:;?!»%])|(?<=«) /g, "\u00a0")])) as Record<Key, string>;
}

/** Write a number; the rules of a language are read once, for a page has hundreds of them. */
export function writtenNumber(locale: string, value: number): string {
  return held(numbers, locale, () => new Intl.NumberFormat(locale)).format(value);
}

/** Write a moment as `options` say. */
export function writtenDate(locale: string, moment: string | Date, options: Intl.DateTimeFormatOptions): string {
  return held(dates, `${locale} ${JSON.stringify(options)}`, () => new Intl.DateTimeFormat(locale, options)).format(new Date(moment));
}

/** Return a sentence of the catalogue, filled in. */
export function say(language: Language, word: Word, values: Record<string, string | number> = {}): string {
  return fill(language, CATALOGUES[language][word], values);
}

/** Fill in a sentence; `one|many` by the rules of the language. */
export function fill(language: Language, found: string, values: Record<string, string | number> = {}): string {
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

/** The reader's own variety of a language, as the browser names it: the United Kingdom writes its days otherwise than the United States. */
export function localeOf(language: Language, asked: readonly string[]): string {
  return asked.find((one) => one.toLowerCase().split("-")[0] === language && isLocale(one)) ?? language;
}

function isLocale(tag: string): boolean {
  try {
    return Intl.DateTimeFormat.supportedLocalesOf(tag).length > 0;
  } catch {
    // Some browsers name what no standard knows, as en-US@posix.
    return false;
  }
}
