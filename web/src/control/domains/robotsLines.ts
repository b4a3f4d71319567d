export interface RobotsLine {
  number: number;
  text: string;
  isDeciding: boolean;
}

const ABOVE = 150;

/** Cut a robots.txt into numbered lines, as the server counts them: any of \r\n, \r and \n ends one.
 *  Of a long file only the lines around the deciding one are shown. */
export function robotsLines(text: string, deciding: number | null, most = 400): { lines: RobotsLine[]; all: number } {
  const all = text.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/);
  if (all.length > 1 && all[all.length - 1] === "") all.pop();
  const first = all.length > most && deciding !== null ? Math.min(Math.max(0, deciding - 1 - ABOVE), all.length - most) : 0;
  const lines = all.slice(first, first + most).map((line, at) => ({ number: first + at + 1, text: line, isDeciding: first + at + 1 === deciding }));
  return { lines, all: all.length };
}
