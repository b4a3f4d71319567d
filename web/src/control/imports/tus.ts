import { t } from "@/language/control/imports";
/** Sending a file in pieces by tus 1.0: what is on the server counts, and after any break the server says where to go on. */

export interface Appended {
  /** Where the next piece begins. */
  offset: number;
  /** The operation that imports the file; only after its last piece. */
  operation: number | null;
}

/** What is asked of the server; the tests have one of their own. */
export interface Wire {
  /** Return where the next piece begins; null if the server knows nothing of it, or it is over. */
  offset(id: number, signal: AbortSignal): Promise<Appended | null>;
  append(id: number, offset: number, piece: Blob, signal: AbortSignal): Promise<Appended>;
}

export interface Watching {
  signal: AbortSignal;
  onProgress: (sent: number) => void;
  /** Said before a wait: what went wrong and how long it is. */
  onWait: (problem: unknown, seconds: number) => void;
  /** Waits, unless it is aborted. */
  wait: (seconds: number, signal: AbortSignal) => Promise<void>;
  /** Milliseconds from anywhere. */
  now: () => number;
}

const FIRST_PIECE = 1 << 20;
const LARGEST_PIECE = 64 << 20;
const SMALLEST_PIECE = 64 << 10;
const TRIES = 8;

/** Return how large the next piece is: it should take about two seconds, so that a bar moves and a break costs little. */
export function nextPiece(before: number, tookMs: number, largest: number = LARGEST_PIECE): number {
  if (tookMs < 1000) return Math.min(before * 2, largest);
  return tookMs > 4000 ? Math.max(before / 2, FIRST_PIECE) : before;
}

/** Return how long to wait before a try, in seconds; what the server asked for wins. */
export function waitBefore(tries: number, asked: number | undefined): number {
  return asked ?? Math.min(30, 2 ** (tries - 1));
}

/** Whether going on from where the server is may help: it was busy, or away, or stands elsewhere than we thought. */
export function mayGoOn(problem: unknown): boolean {
  const status = (problem as { status?: unknown } | null)?.status;
  if (typeof status !== "number") return !(problem instanceof DOMException && problem.name === "AbortError");
  return status === 409 || status === 423 || status === 408 || status === 429 || status >= 500;
}

export class UploadGone extends Error {
  constructor() {
    super(t("gone"));
  }
}

/** Send the file from where the server is to its end; return the operation that imports it. */
export async function sendPieces(wire: Wire, id: number, file: Blob, watching: Watching): Promise<number | null> {
  const { signal, onProgress, onWait, wait, now } = watching;
  let here = await wire.offset(id, signal);
  let piece = FIRST_PIECE;
  let largest = LARGEST_PIECE;
  let tries = 0;
  for (;;) {
    if (!here) throw new UploadGone();
    onProgress(here.offset);
    if (here.offset >= file.size) return here.operation;
    const before = here.offset;
    const started = now();
    try {
      here = await wire.append(id, before, file.slice(before, before + piece), signal);
      piece = nextPiece(piece, now() - started, largest);
      tries = 0;
    } catch (problem) {
      // A proxy in front of the server takes no piece of this size (nginx: 1 MB by itself): smaller ones from now on.
      if ((problem as { status?: unknown } | null)?.status === 413 && piece > SMALLEST_PIECE) {
        largest = piece = piece / 2;
        continue;
      }
      if (signal.aborted || !mayGoOn(problem) || ++tries > TRIES) throw problem;
      const seconds = waitBefore(tries, (problem as { retryAfter?: number }).retryAfter);
      onWait(problem, seconds);
      await wait(seconds, signal);
      // What arrived of the piece counts: the server is asked, nothing is guessed. If it is still away, the next turn tells.
      const found = await wire.offset(id, signal).catch((away: unknown) => {
        if (!mayGoOn(away)) throw away;
        return here;
      });
      if (found && found.offset > before) tries = 0;
      here = found;
    }
  }
}

/** Write the metadata of an upload: pairs of a name and a value in Base64. */
export function metadata(values: Record<string, string | undefined>): string {
  return Object.entries(values)
    .filter((pair): pair is [string, string] => Boolean(pair[1]))
    .map(([name, value]) => `${name} ${btoa(String.fromCharCode(...new TextEncoder().encode(value)))}`)
    .join(",");
}

/** Name a file so that it is known again after a reload. */
export function fingerprint(file: { name: string; size: number; lastModified: number }, source: string): string {
  return `holdfast-upload:${source}:${file.size}:${file.lastModified}:${file.name}`;
}
