export interface Cited {
  title: string | null;
  url: string;
  captureTimestamp: string;
  sourceName: string;
  permalink: string;
  digest: string | null;
  recordId: string | null;
}

const day = (moment: string) => moment.slice(0, 10);

/** A citation as the American Psychological Association writes one of an archived page. */
export function apa(cited: Cited, retrieved: Date): string {
  const captured = new Date(cited.captureTimestamp);
  const written = new Intl.DateTimeFormat("en-US", { month: "long", day: "numeric", timeZone: "UTC" }).format(captured);
  const today = new Intl.DateTimeFormat("en-US", { dateStyle: "long", timeZone: "UTC" }).format(retrieved);
  return `${cited.sourceName}. (${captured.getUTCFullYear()}, ${written}). ${cited.title ?? cited.url}. Archived copy of ${cited.url}, retrieved ${today}, from ${cited.permalink}`;
}

/** The same as an entry of BibTeX; what means something to TeX is escaped. */
export function bibtex(cited: Cited): string {
  const key = `${hostOf(cited.url)}-${day(cited.captureTimestamp)}`.replace(/[^A-Za-z0-9-]/g, "");
  const fields: [string, string][] = [
    ["title", `{${escaped(cited.title ?? cited.url)}}`],
    ["organization", escaped(cited.sourceName)],
    ["year", day(cited.captureTimestamp).slice(0, 4)],
    ["month", day(cited.captureTimestamp).slice(5, 7)],
    ["url", verbatim(cited.permalink)],
    ["note", escaped(`Archived copy of ${cited.url}, captured ${cited.captureTimestamp}${cited.digest ? `, ${cited.digest}` : ""}${cited.recordId ? `, WARC record ${cited.recordId}` : ""}`)],
  ];
  return `@misc{${key},\n${fields.map(([name, value]) => `  ${name} = {${value}}`).join(",\n")}\n}`;
}

function hostOf(url: string): string {
  try {
    return new URL(url).hostname;
  } catch {
    return "page";
  }
}

function verbatim(text: string): string {
  return text.replace(/[{}]/g, (one) => (one === "{" ? "%7B" : "%7D")).replace(/[%#&]/g, (one) => `\\${one}`);
}

const SIGNS: Record<string, string> = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };

function escaped(text: string): string {
  return text.replace(/[\\{}$&%#_^~]/g, (sign) => SIGNS[sign] ?? `\\${sign}`);
}
