import { createContext, use, useEffect, useMemo, useState, type ReactNode } from "react";
import type { Word } from "./en";
import { dateFormat, localeOf, numberFormat } from "./formats";
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

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, speak] = useState<Language>(() => startLanguage(localStorage.getItem("language"), navigator.languages));
  useEffect(() => {
    document.documentElement.lang = language;
    localStorage.setItem("language", language);
  }, [language]);
  const spoken = useMemo<Spoken>(() => {
    const locale = localeOf(language, navigator.languages);
    return {
      language,
      speak,
      t: (word, values) => say(language, word, values),
      number: (value) => numberFormat(locale).format(value),
      // Dates of captures are UTC: the day that the archive filed them under.
      date: (moment, options) => dateFormat(locale, { dateStyle: "medium", timeZone: "UTC", ...options }).format(new Date(moment)),
      moment: (moment) => `${dateFormat(locale, { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC", hourCycle: "h23" }).format(new Date(moment))} UTC`,
      localMoment: (moment) => dateFormat(locale, { dateStyle: "full", timeStyle: "long" }).format(new Date(moment)),
    };
  }, [language]);
  return <Context value={spoken}>{children}</Context>;
}
