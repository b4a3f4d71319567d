/** When a source is crawled, as the form asks for it. The server reads and writes the same as words. */
export interface When {
  often: "once" | "daily" | "weekly" | "monthly" | "yearly" | "every";
  weekday: string;
  day: string;
  month: string;
  every: string;
  unit: string;
  /** The first day of a longer rhythm; empty lets the server begin at once. */
  from: string;
  /** A time of day; empty lets the server choose one. */
  at: string;
  zone: string;
  adapts: boolean;
}

export const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
export const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
export const UNITS = ["minutes", "hours", "days", "weeks", "months", "years"];
const ADAPTS = ", less often while nothing changes";

/** Where the reader is. */
const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export const NEVER: When = { often: "once", weekday: "Monday", day: "1", month: "January", every: "3", unit: "days", from: "", at: "03:00", zone: HERE, adapts: true };

/** Whether a rhythm can name a time of day. */
export function hasTime({ often, unit }: Pick<When, "often" | "unit">): boolean {
  return often !== "once" && !(often === "every" && (unit === "minutes" || unit === "hours"));
}

/** Write what the form holds in the words that the server reads. */
export function wordsOf(when: When): string {
  const time = hasTime(when) && when.at ? ` at ${when.at} ${when.zone}` : "";
  const free = when.adapts && !time ? ADAPTS : "";
  switch (when.often) {
    case "once": return "once";
    case "daily": return `daily${time}${free}`;
    case "weekly": return time ? `weekly on ${when.weekday}${time}` : `weekly${free}`;
    case "monthly": return `monthly on day ${when.day || "1"}${time}`;
    case "yearly": return `yearly on ${when.day || "1"} ${when.month}${time}`;
    case "every": return `every ${when.every} ${when.unit}${time && when.from && Number(when.every) > 1 ? ` from ${when.from}` : ""}${time}${free}`;
  }
}

const SENTENCE = /^(?:(daily|weekly|monthly|yearly)|every (?:(\d+) )?(minute|hour|day|week|month|year)s?)(?: on (?:day )?(\d+)?\s?([A-Za-z]+)?)?(?: from ([\d-]+))?(?: at (\d\d:\d\d) (\S+?))?(, less often while nothing changes)?$/;

/** Read the server's words into the form; what it does not know is shown as once. */
export function readWords(words: string): When {
  const found = SENTENCE.exec(words);
  if (!found) return NEVER;
  const [, often, every, unit, day, name, from, at, zone, adapts] = found;
  const isDay = !often && !at && (every ?? "1") === "1" && unit === "day";
  return {
    ...NEVER,
    often: isDay ? "daily" : ((often as When["often"] | undefined) ?? "every"),
    ...(every ? { every } : often || isDay ? {} : { every: "1" }),
    ...(unit && !isDay ? { unit: `${unit}s` } : {}),
    ...(day ? { day } : {}),
    ...(name && WEEKDAYS.includes(name) ? { weekday: name } : {}),
    ...(name && MONTHS.includes(name) ? { month: name } : {}),
    ...(from ? { from } : {}),
    at: at ?? "",
    ...(zone ? { zone } : {}),
    adapts: Boolean(adapts),
  };
}

/** The zones that the form offers: where the reader is, UTC, and the one that is kept. */
export function zonesFor(kept: string): string[] {
  return [...new Set([HERE, "UTC", kept])];
}
