const dates = new Map<string, Intl.DateTimeFormat>();
const numbers = new Map<string, Intl.NumberFormat>();

/** Making a format takes as long as using it a hundred times, and a calendar needs hundreds: each is made once. */
export function dateFormat(locale: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${locale} ${JSON.stringify(options)}`;
  const found = dates.get(key) ?? new Intl.DateTimeFormat(locale, options);
  dates.set(key, found);
  return found;
}

export function numberFormat(locale: string): Intl.NumberFormat {
  const found = numbers.get(locale) ?? new Intl.NumberFormat(locale);
  numbers.set(locale, found);
  return found;
}

/** The reader's own variety of a language, as the browser names it: the United Kingdom writes its days otherwise than the United States. */
export function localeOf(language: string, asked: readonly string[]): string {
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
