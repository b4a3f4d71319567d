import type { components } from "@/api/schema";
import type { Only } from "./asked";

export type HistoryCapture = components["schemas"]["HistoryCapture"];
export type DayShown = components["schemas"]["HistoryDay"];

/** How a server answered, as a colour and a shape. */
export type StatusClass = "2xx" | "3xx" | "4xx" | "5xx" | "other";

export interface Day {
  /** YYYY-MM-DD, UTC. */
  day: string;
  captures: number;
  changes: number;
  status: StatusClass;
  first: { id: number; timestamp: string };
}

export function classOf(status: number | null): StatusClass {
  const hundred = status === null ? 0 : Math.floor(status / 100);
  return hundred >= 2 && hundred <= 5 ? (`${hundred}xx` as StatusClass) : "other";
}

/** The class that most captures of a day have; the better one where two are as many. */
export function mainClass(statuses: Record<string, number>): StatusClass {
  const known: StatusClass[] = ["2xx", "3xx", "4xx", "5xx", "other"];
  return known.reduce((best, one) => ((statuses[one] ?? 0) > (statuses[best] ?? 0) ? one : best), "2xx");
}

/** Leave what is asked for: only captures that changed something, or only those that the server answered well. */
export function kept(captures: HistoryCapture[], only: Only | undefined): HistoryCapture[] {
  if (only === "changes") return captures.filter((one) => one.isChange);
  if (only === "ok") return captures.filter((one) => classOf(one.statusCode) === "2xx");
  return captures;
}

/** The days as the server counted them. */
export function countedDays(days: DayShown[]): Map<string, Day> {
  return new Map(days.map((one) => [one.day, { day: one.day, captures: one.captures, changes: one.changes, status: mainClass(one.statuses), first: { id: one.firstSnapshotId, timestamp: one.firstTimestamp } }]));
}

/** The days of some captures, which are in order. */
export function daysOf(captures: HistoryCapture[]): Map<string, Day> {
  const counts = new Map<string, { captures: HistoryCapture[]; statuses: Record<string, number> }>();
  for (const one of captures) {
    const day = one.captureTimestamp.slice(0, 10);
    const found = counts.get(day) ?? { captures: [], statuses: {} };
    found.captures.push(one);
    const status = classOf(one.statusCode);
    found.statuses[status] = (found.statuses[status] ?? 0) + 1;
    counts.set(day, found);
  }
  return new Map([...counts].map(([day, found]) => [day, {
    day,
    captures: found.captures.length,
    changes: found.captures.filter((one) => one.isChange).length,
    status: mainClass(found.statuses),
    first: { id: found.captures[0]?.snapshotId ?? 0, timestamp: found.captures[0]?.captureTimestamp ?? "" },
  }]));
}

/** The weeks of a month from Monday on; null where a week begins or ends in another month. */
export function weeksOf(year: number, month: number): (string | null)[][] {
  const length = new Date(Date.UTC(year, month, 0)).getUTCDate();
  const blank = (new Date(Date.UTC(year, month - 1, 1)).getUTCDay() + 6) % 7;
  const cells: (string | null)[] = Array.from({ length: blank }, () => null);
  for (let day = 1; day <= length; day++) cells.push(`${year}-${String(month).padStart(2, "0")}-${String(day).padStart(2, "0")}`);
  while (cells.length % 7 !== 0) cells.push(null);
  return Array.from({ length: cells.length / 7 }, (_, at) => cells.slice(at * 7, at * 7 + 7));
}

/** How large the dot of a day is, in pixels: it grows with the captures, slowly. */
export function dotSize(captures: number): number {
  if (captures <= 1) return 12;
  return Math.min(22, 12 + Math.round(Math.log2(captures) * 3));
}

/** Every year from the first to the last, those without captures too. */
export function yearsBetween(years: { year: number; captures: number }[]): { year: number; captures: number }[] {
  const first = years[0];
  const last = years.at(-1);
  if (!first || !last) return [];
  const counts = new Map(years.map((one) => [one.year, one.captures]));
  return Array.from({ length: Math.min(last.year - first.year + 1, 200) }, (_, at) => ({ year: last.year - at, captures: counts.get(last.year - at) ?? 0 })).reverse();
}

/** A moment as the fourteen digits of a replay address. */
export function digits(moment: string): string {
  return new Date(moment).toISOString().replace(/\D/g, "").slice(0, 14);
}
