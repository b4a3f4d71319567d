/** What is used of the browser's EventSource; a test passes its own. */
export interface Source {
  readonly readyState: number;
  addEventListener(name: string, listener: (event: MessageEvent<string>) => void): void;
  close(): void;
}

export interface Told {
  /** Every event of the stream that was asked for, its data read. */
  event: (name: string, data: unknown) => void;
  /** Whether the stream stands. */
  live: (isLive: boolean) => void;
  /** The server ended it because the session is over. */
  revoked: () => void;
}

interface Around {
  make: (path: string) => Source;
  wait: (run: () => void, ms: number) => () => void;
}

const CLOSED = 2;
/** Beats of the server that may fail to come before a stream counts as broken. */
const BEATS = 2.5;
/** A refused stream (too many, the server stops) is asked for again after so long; pages poll meanwhile. */
export const AGAIN_MS = 15_000;

const browser: Around = {
  make: (path) => new EventSource(path),
  wait: (run, ms) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/**
 * Listen to a stream of the server until the returned function is called.
 * The browser takes a stream that was cut off up again by itself, with the id of the last event; one that was refused it gives up, and we ask again later.
 */
export function listen(path: string, names: readonly string[], told: Told, around: Around = browser): () => void {
  let source: Source | null = null;
  let unwait: (() => void) | null = null;
  let unwatch: (() => void) | null = null;
  let beatMs = 0;
  let isOver = false;

  /** A line that went dead without a word breaks no stream: only the beats stop. */
  function heard() {
    unwatch?.();
    unwatch = beatMs > 0 ? around.wait(reopen, BEATS * beatMs) : null;
  }

  function reopen() {
    told.live(false);
    source?.close();
    open();
  }

  function open() {
    source = around.make(path);
    source.addEventListener("connected", (event) => {
      const { heartbeatSeconds } = (read(event.data) ?? {}) as { heartbeatSeconds?: unknown };
      beatMs = typeof heartbeatSeconds === "number" ? heartbeatSeconds * 1000 : 0;
      heard();
      told.live(true);
    });
    source.addEventListener("beat", heard);
    source.addEventListener("error", () => {
      unwatch?.();
      told.live(false);
      if (source?.readyState === CLOSED && !isOver) again();
    });
    source.addEventListener("end", (event) => {
      const reason = (read(event.data) as { reason?: string } | null)?.reason;
      if (reason !== "over" && reason !== "revoked") return;
      end();
      told.live(false);
      if (reason === "revoked") told.revoked();
    });
    for (const name of names) {
      source.addEventListener(name, (event) => {
        heard();
        told.event(name, read(event.data));
      });
    }
  }

  function again() {
    source?.close();
    unwait = around.wait(open, AGAIN_MS);
  }

  function end() {
    isOver = true;
    unwait?.();
    unwatch?.();
    source?.close();
  }

  open();
  return end;
}

function read(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}
