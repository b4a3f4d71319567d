import { bytes, count } from "@/control/charts/format";
import { t } from "@/language/control/operations";
import { t as common } from "@/language/control/common";

/** Name an operation for people. */
export function nameOf(kind: string): string {
  return t.of("kind", kind);
}

interface Progress {
  phase: string | null;
  done: number;
  total: number | null;
}

/** Say how far it is: bytes where it counts bytes, else a number. */
export function farOf(progress: Progress): string {
  // An import writes what it reads behind a colon: "reading: a.warc.gz".
  const said = progress.phase ?? "";
  const colon = said.indexOf(":");
  const phase = colon < 0 ? t.of("phase", said) : `${t.of("phase", said.slice(0, colon))}${said.slice(colon)}`;
  // Files and rows are thousands at most of one archive; what is larger is bytes.
  const amount = (progress.total ?? progress.done) >= 1_000_000 ? bytes : count;
  const far = progress.total ? t("far", { done: amount(progress.done), total: amount(progress.total), share: Math.floor((100 * progress.done) / progress.total) }) : progress.done ? amount(progress.done) : "";
  if (!progress.phase) return far || t("waits");
  return far ? t("phaseOf", { phase, far }) : phase;
}

/** Say what came of it, in the order in which the server tells it; lists are counted. */
export function resultOf(result: Record<string, unknown>): [string, string][] {
  return Object.entries(result).flatMap(([name, value]): [string, string][] => {
    const label = t.of("result", name.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase());
    if (value === null || value === undefined) return [];
    if (typeof value === "number") return [[label, name === "bytes" ? bytes(value) : count(value)]];
    if (typeof value === "boolean") return [[label, common(value ? "yes" : "no")]];
    if (typeof value === "string") return [[label, value]];
    if (Array.isArray(value)) return value.length ? [[label, t("entries", { count: value.length })]] : [];
    return Object.entries(value as Record<string, unknown>).map(([part, number]): [string, string] => [t("phaseOf", { phase: label, far: t.of("count", part) }), String(number)]);
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
    return lines.map((line) => `${String(row["name"] ?? t("file", { id: String(row["file"]) }))}: ${line}`);
  });
}
