import { bytes, counted } from "@/control/charts/format";
import { plain } from "@/control/page/words";

const NAMES: Record<string, string> = {
  import: "Import",
  verify: "Verification",
  rebuild_index: "Reading WARC files again",
  rebuild_search: "Rebuilding the search index",
  report_edition: "Edition report",
  freeze_edition: "Freezing an edition",
  verify_edition: "Verifying an edition",
  compare_editions: "Comparing editions",
};

/** Name an operation for people. */
export function nameOf(kind: string): string {
  return NAMES[kind] ?? plain(kind);
}

interface Progress {
  phase: string | null;
  done: number;
  total: number | null;
}

/** Say how far it is: bytes where it counts bytes, else a number. */
export function farOf(progress: Progress): string {
  const phase = progress.phase ? `${progress.phase}: ` : "";
  // Files and rows are thousands at most of one archive; what is larger is bytes.
  const amount = (progress.total ?? progress.done) >= 1_000_000 ? bytes : (count: number) => count.toLocaleString("en");
  if (progress.total) return `${phase}${amount(progress.done)} of ${amount(progress.total)} (${Math.floor((100 * progress.done) / progress.total)} %)`;
  return progress.done ? `${phase}${amount(progress.done)}` : progress.phase ?? "waits for its turn";
}

/** Say what came of it, in the order in which the server tells it; lists are counted. */
export function resultOf(result: Record<string, unknown>): [string, string][] {
  return Object.entries(result).flatMap(([name, value]): [string, string][] => {
    const label = plain(name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase());
    if (value === null || value === undefined) return [];
    if (typeof value === "number") return [[label, name === "bytes" ? bytes(value) : value.toLocaleString("en")]];
    if (typeof value === "boolean") return [[label, value ? "yes" : "no"]];
    if (typeof value === "string") return [[label, value]];
    if (Array.isArray(value)) return value.length ? [[label, counted(value.length, "entry", "entries")]] : [];
    return Object.entries(value as Record<string, unknown>).map(([part, count]): [string, string] => [`${label}: ${plain(part)}`, String(count)]);
  });
}

/** Return the problems that a result names, each in a line. */
export function problemsOf(result: Record<string, unknown>): string[] {
  const lists = ["problems", "errors", "files", "examples"].map((name) => result[name]).filter(Array.isArray) as unknown[][];
  return lists.flat().flatMap((one) => {
    if (typeof one === "string") return [one];
    const row = one as Record<string, unknown>;
    const what = row["error"] ?? row["detail"];
    const notes = Array.isArray(row["notes"]) ? row["notes"].map(String) : [];
    const lines = what ? [String(what), ...notes] : notes;
    return lines.map((line) => `${String(row["name"] ?? `file ${String(row["file"])}`)}: ${line}`);
  });
}
