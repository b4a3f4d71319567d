import { createContext, use, useEffect, useMemo, useState, type ReactNode } from "react";
import type { Word } from "./en";
import { say, startLanguage, type Language } from "./words";

interface Spoken {
  language: Language;
  speak: (language: Language) => void;
  t: (word: Word, values?: Record<string, string | number>) => string;
  number: (value: number) => string;
  date: (moment: string | Date, options?: Intl.DateTimeFormatOptions) => string;
  /** Day and time of a capture, in UTC. */
  moment: (moment: string | Date) => string;
  /** The same by the reader's own clock, for a `title`. */
  localMoment: (moment: string | Date) => string;
}

const Context = createContext<Spoken | null>(null);

/** The words of the page, in the reader's language. */
export function useWords(): Spoken {
  const found = use(Context);
  if (!found) throw new Error("LanguageProvider is missing");
  return found;
}

/** How dates are written: in English the day comes first, as in the control room. */
const DATES: Record<Language, string> = { en: "en-GB", fr: "fr" };

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, speak] = useState<Language>(() => startLanguage(localStorage.getItem("language"), navigator.languages));
  useEffect(() => {
    document.documentElement.lang = language;
    localStorage.setItem("language", language);
  }, [language]);
  const spoken = useMemo<Spoken>(() => ({
    language,
    speak,
    t: (word, values) => say(language, word, values),
    number: (value) => new Intl.NumberFormat(language).format(value),
    // Dates of captures are UTC: the day that the archive filed them under.
    date: (moment, options) => new Intl.DateTimeFormat(DATES[language], { dateStyle: "medium", timeZone: "UTC", ...options }).format(new Date(moment)),
    moment: (moment) => `${new Intl.DateTimeFormat(DATES[language], { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC", hourCycle: "h23" }).format(new Date(moment))} UTC`,
    localMoment: (moment) => new Intl.DateTimeFormat(DATES[language], { dateStyle: "full", timeStyle: "long" }).format(new Date(moment)),
  }), [language]);
  return <Context value={spoken}>{children}</Context>;
}
