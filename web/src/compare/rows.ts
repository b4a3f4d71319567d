import type { components } from "@/api/schema";

export type Hunk = components["schemas"]["DiffHunk"];
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

/** Lines that follow each other and all changed, or all did not. */
export interface Stretch {
  isChange: boolean;
  pairs: Pair[];
}

/** Cut a hunk where changed lines begin and end: changes that lie close together come in one hunk. */
export function stretchesOf(hunk: Hunk): Stretch[] {
  const stretches: Stretch[] = [];
  for (const pair of pairsOf(hunk)) {
    const last = stretches.at(-1);
    if (last?.isChange === pair.isChange) last.pairs.push(pair);
    else stretches.push({ isChange: pair.isChange, pairs: [pair] });
  }
  return stretches;
}

type Span = Pick<Hunk, "fromLine" | "toLine" | "fromCount" | "toCount">;

/** Every place that changed, with the lines it takes: what is counted, and jumped to. */
export function placesOf(hunk: Hunk): Span[] {
  const places: Span[] = [];
  let [fromLine, toLine] = [hunk.fromLine, hunk.toLine];
  for (const { isChange, pairs } of stretchesOf(hunk)) {
    const fromCount = pairs.filter((pair) => pair.before).length;
    const toCount = pairs.filter((pair) => pair.after).length;
    if (isChange) places.push({ fromLine, toLine, fromCount, toCount });
    fromLine += fromCount;
    toLine += toCount;
  }
  return places;
}

/** Where each place stands in the whole, in per cent: what the map at the side shows. */
export function marksOf(places: Span[], whole: Span[] = places): { top: number; height: number }[] {
  const end = Math.max(1, ...whole.map((one) => Math.max(one.fromLine + one.fromCount, one.toLine + one.toCount)));
  return places.map((one) => {
    const top = (Math.max(one.toLine, 1) - 1) / end;
    const height = Math.max(one.fromCount, one.toCount, 1) / end;
    return { top: Math.min(99, top * 100), height: Math.min(100 - Math.min(99, top * 100), Math.max(1, height * 100)) };
  });
}
