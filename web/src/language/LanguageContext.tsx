import { createContext, use, useEffect, useMemo, useState, type ReactNode } from "react";
import { keepLanguage, keptLanguage } from "@/app/kept";
import type { Word } from "./en";
import { loadRooms } from "./room";
import { speakOutside } from "./spoken";
import { localeOf, say, startLanguage, writtenDate, writtenNumber, type Language } from "./words";

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
  /** The reader's own time, shorter; null where that is UTC. */
  localTime: (moment: string | Date) => string | null;
}

const Context = createContext<Spoken | null>(null);

/** The words of the page, in the reader's language. */
export function useWords(): Spoken {
  const found = use(Context);
  if (!found) throw new Error("LanguageProvider is missing");
  return found;
}

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, choose] = useState<Language>(() => speakOutside(startLanguage(keptLanguage(), navigator.languages)));
  useEffect(() => {
    document.documentElement.lang = language;
    keepLanguage(language);
  }, [language]);
  const spoken = useMemo<Spoken>(() => {
    const locale = localeOf(language, navigator.languages);
    return {
      language,
      // Without the sentences of that language the page stays in this one; they come with the next page.
      speak: (chosen) => void loadRooms(chosen).catch(() => undefined).then(() => choose(speakOutside(chosen))),
      t: (word, values) => say(language, word, values),
      number: (value) => writtenNumber(locale, value),
      // Dates of captures are UTC: the day that the archive filed them under.
      date: (moment, options) => writtenDate(locale, moment, { dateStyle: "medium", timeZone: "UTC", ...options }),
      moment: (moment) => `${writtenDate(locale, moment, { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC", hourCycle: "h23" })} UTC`,
      localMoment: (moment) => writtenDate(locale, moment, { dateStyle: "full", timeStyle: "long" }),
      localTime: (moment) => (new Date(moment).getTimezoneOffset() === 0 ? null : writtenDate(locale, moment, { dateStyle: "medium", timeStyle: "long" })),
    };
  }, [language]);
  return <Context value={spoken}>{children}</Context>;
}
