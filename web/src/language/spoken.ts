import { writtenDate, type Language } from "./words";

/** The language of the page, for functions outside components. */
export const spoken: { language: Language } = { language: "en" };

/** Choose the language; `LanguageProvider` does so before its pages render. */
export function speakOutside(language: Language): Language {
  spoken.language = language;
  return language;
}

const LOCALES = { en: "en-GB", fr: "fr" };

/** Write a moment of the control room in the language of the page. */
export function spokenDate(moment: string | Date, options: Intl.DateTimeFormatOptions): string {
  return writtenDate(LOCALES[spoken.language], moment, options);
}
