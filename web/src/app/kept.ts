/** What this browser keeps for the reader. Some keep nothing, by a setting or a policy: the page works without. */
export function readKept(name: string, { inWindow = false } = {}): string | null {
  try {
    return (inWindow ? sessionStorage : localStorage).getItem(name);
  } catch {
    return null;
  }
}

/** Forget all that is kept for as long as this window is open: the next person at it is another. */
export function forgetWindow(): void {
  try {
    sessionStorage.clear();
  } catch {
    // Nothing was kept.
  }
}

/** Keep a value under a name, for always or as long as this window is open; null forgets it. */
export function keep(name: string, value: string | null, { inWindow = false } = {}): void {
  try {
    const store = inWindow ? sessionStorage : localStorage;
    if (value === null) store.removeItem(name);
    else store.setItem(name, value);
  } catch {
    // It holds until the page is left.
  }
}

/** The language that was chosen. A cookie has it, too: the sign-in and account pages are written by the server. */
export function keptLanguage(): string | null {
  return /(?:^|; )language=(en|fr)(?:;|$)/.exec(document.cookie)?.[1] ?? readKept("language");
}

export function keepLanguage(language: string): void {
  keep("language", language);
  document.cookie = `language=${language}; path=/; max-age=31536000; samesite=lax`;
}
