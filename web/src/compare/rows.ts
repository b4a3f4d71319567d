import type { components } from "@/api/schema";

type Hunk = components["schemas"]["DiffHunk"];
export type DiffRow = components["schemas"]["DiffRow"];

export interface Line {
  /** Its number in the text it belongs to. */
  number: number;
  row: DiffRow;
}

/** What stands beside each other: a line that was, and the line that took its place. */
export interface Pair {
  before: Line | null;
  after: Line | null;
  isChange: boolean;
}

/** Lay the lines of a hunk side by side: lines that went beside lines that came, in their order. */
export function pairsOf(hunk: Hunk): Pair[] {
  const pairs: Pair[] = [];
  let [was, is] = [hunk.fromLine, hunk.toLine];
  let removed: Line[] = [];
  let added: Line[] = [];
  function settle() {
    for (let at = 0; at < Math.max(removed.length, added.length); at++) pairs.push({ before: removed[at] ?? null, after: added[at] ?? null, isChange: true });
    removed = [];
    added = [];
  }
  for (const row of hunk.lines) {
    if (row.type === "removed") removed.push({ number: was++, row });
    else if (row.type === "added") added.push({ number: is++, row });
    else {
      settle();
      pairs.push({ before: { number: was++, row }, after: { number: is++, row }, isChange: false });
    }
  }
  settle();
  return pairs;
}
