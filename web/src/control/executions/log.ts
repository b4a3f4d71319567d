import type { components } from "@/api/schema";

export type LogEntry = components["schemas"]["LogEntry"];
export const LEVELS = ["debug", "info", "warning", "error"] as const;
export type Level = (typeof LEVELS)[number];
/** Lines that a page keeps; the whole log can be downloaded. */
export const KEPT = 2000;

/** Add lines to those that are kept: each once, though a stream that is taken up again tells the last ones anew; the oldest make room. */
export function withLines(kept: readonly LogEntry[], added: readonly LogEntry[]): LogEntry[] {
  const last = kept.at(-1)?.id ?? -1;
  const all = [...kept, ...added.filter((line) => line.id > last)];
  return all.length > KEPT ? all.slice(all.length - KEPT) : all;
}

/** Count the lines that came after those that are held still; the oldest may have made room meanwhile. */
export function linesSince(newest: readonly LogEntry[], held: readonly LogEntry[]): number {
  const last = held.at(-1)?.id ?? -1;
  return newest.filter((line) => line.id > last).length;
}

/** Return the lines of at least a level that hold every word. */
export function shownLines(lines: readonly LogEntry[], least: Level, search: string): LogEntry[] {
  const from = LEVELS.indexOf(least);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return lines.filter((line) => {
    const level = LEVELS.indexOf(line.level as Level);
    if (level !== -1 && level < from) return false;
    if (words.length === 0) return true;
    const text = `${line.message} ${line.category} ${fieldsOf(line)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** What a line says besides its message: name=value, as text. */
export function fieldsOf(line: LogEntry): string {
  return Object.entries(line.fields).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(" ");
}
