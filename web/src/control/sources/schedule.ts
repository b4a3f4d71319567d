import { t } from "@/language/control/sources";
import { spokenDate } from "@/language/spoken";

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
const EVERY_ONE: Record<string, string> = { minutes: "minute", hours: "hourly", days: "daily", weeks: "weekly", months: "monthly", years: "yearly" };
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

/** The name of a weekday or a month in the language of the page, by its place in the list. */
export function calendarName(kind: "weekday" | "month", at: number): string {
  // 1 January 2024 was a Monday.
  return spokenDate(new Date(Date.UTC(2024, kind === "month" ? at : 0, kind === "month" ? 1 : 1 + at)), { [kind]: "long", timeZone: "UTC" });
}

/** A schedule as people read it, in the language of the page; one that this page cannot read is shown as the server writes it. */
export function scheduleText(words: string): string {
  if (words === "once") return t("when.once");
  if (!SENTENCE.test(words)) return words;
  const { often, weekday, day, month, every, unit, from, at, zone, adapts } = readWords(words);
  let text = often === "every" ? (every === "1" ? t.of("when", EVERY_ONE[unit] ?? unit) : t.of("each", unit, { number: every })) : t(`when.${often}`);
  const on = !at ? "" : often === "weekly" ? calendarName("weekday", WEEKDAYS.indexOf(weekday)) : often === "monthly" ? day : often === "yearly" ? `${day} ${calendarName("month", MONTHS.indexOf(month))}` : "";
  if (on) text = t(often === "monthly" ? "when.onDay" : "when.on", { often: text, day: on });
  if (from) text = t("when.from", { often: text, day: from });
  if (at) text = t("when.at", { often: text, time: at, zone });
  return adapts ? t("when.adapts", { often: text }) : text;
}

/** The zones that the form offers: where the reader is, UTC, and the one that is kept. */
export function zonesFor(kept: string): string[] {
  return [...new Set([HERE, "UTC", kept])];
}
