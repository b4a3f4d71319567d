/** How often to try again while the server does not answer: 1 s, then twice as long each time. */
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 15_000;
/** Without an answer for so long, a page that is looked at checks the server. */
export const QUIET_MS = 6000;
const PROBE_MS = 5000;

interface Around {
  /** Whether the server answers a request that touches nothing. */
  probe: () => Promise<boolean>;
  wait: (run: () => void, ms: number) => () => void;
  now: () => number;
}

/**
 * Whether the server answers, for all pages of this window. A request that failed, a stream that broke or a long silence only raises a doubt: one probe decides, and is repeated until the server
 * answers. What waits for the server waits for that one probe.
 */
export class Connection {
  private lastAnswer: number;
  private awaySince: number | null = null;
  private probing: Promise<void> | null = null;
  private hurry: (() => void) | null = null;
  private readonly listeners = new Set<() => void>();

  constructor(private readonly around: Around) {
    this.lastAnswer = around.now();
  }

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** When the server last answered, while it does not answer; null while it does. */
  readonly since = () => this.awaySince;

  /** An answer of the server has come: while it was away, the next probe need not wait. */
  answered(): void {
    this.lastAnswer = this.around.now();
    this.hurry?.();
  }

  /** Something speaks against the server: probe it. Resolves as soon as it answers; whether it had been away. */
  async doubt(): Promise<boolean> {
    const probing = (this.probing ??= this.untilAnswer().finally(() => { this.probing = null; }));
    let wasAway = this.awaySince !== null;
    const stop = this.subscribe(() => { wasAway ||= this.awaySince !== null; });
    await probing;
    stop();
    return wasAway;
  }

  /** Do not wait for the next try: the network is back, or somebody asks for it. */
  tryNow(): void {
    if (this.hurry) this.hurry();
    else void this.doubt();
  }

  /** Probe a server that has been silent for long; for a timer of the page. */
  checkSilence(): void {
    if (this.around.now() - this.lastAnswer >= QUIET_MS) void this.doubt();
  }

  private async untilAnswer(): Promise<void> {
    for (let pause = FIRST_WAIT_MS; !(await this.around.probe()); pause = Math.min(2 * pause, LONGEST_WAIT_MS)) {
      this.tell(this.awaySince ?? this.lastAnswer);
      await this.pause(pause);
    }
    this.answered();
    this.tell(null);
  }

  private pause(ms: number): Promise<void> {
    return new Promise<void>((resolve) => {
      const unwait = this.around.wait(done, ms);
      function done() {
        unwait();
        resolve();
      }
      this.hurry = done;
    }).then(() => { this.hurry = null; });
  }

  private tell(since: number | null): void {
    if (since === this.awaySince) return;
    this.awaySince = since;
    for (const listener of this.listeners) listener();
  }
}

async function probe(): Promise<boolean> {
  try {
    // Without the cookie: a session that has ended would be refused, and says nothing about the server.
    const answer = await fetch("/health/live", { credentials: "omit", cache: "no-store", signal: AbortSignal.timeout(PROBE_MS) });
    return answer.ok && (answer.headers.get("Content-Type") ?? "").includes("json");
  } catch {
    return false;
  }
}

/** The connection of this window. */
export const connection = new Connection({
  probe,
  wait: (run, ms) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  now: () => Date.now(),
});

/** Watch the connection while the page is looked at; returns how to stop. */
export function watchConnection(): () => void {
  const isSeen = () => document.visibilityState !== "hidden";
  const timer = setInterval(() => { if (isSeen()) connection.checkSilence(); }, QUIET_MS / 2);
  const look = () => { if (isSeen()) connection.checkSilence(); };
  const changed = () => connection.tryNow();
  document.addEventListener("visibilitychange", look);
  addEventListener("online", changed);
  addEventListener("offline", changed);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", look);
    removeEventListener("online", changed);
    removeEventListener("offline", changed);
  };
}

/** Whether an answer is a proxy's whose server is away: our own errors carry the id of their request. */
function isOfProxy(answer: Response): boolean {
  return [502, 503, 504].includes(answer.status) && !answer.headers.has("X-Request-Id");
}

/**
 * `fetch` for what only reads: while the server is away it waits, and asks again when the server answers. A request that fails although the server answers is tried once more, then fails. Changes are
 * sent once: nobody expects a click to take effect an hour later.
 */
export async function fetchPatiently(asked: Request | string, options: RequestInit = {}): Promise<Response> {
  const method = asked instanceof Request ? asked.method : (options.method ?? "GET");
  const signal = asked instanceof Request ? asked.signal : options.signal;
  for (let isLast = method !== "GET" && method !== "HEAD"; ; ) {
    let failed: () => Response;
    try {
      const answer = await fetch(asked, options);
      if (!isOfProxy(answer)) {
        connection.answered();
        return answer;
      }
      failed = () => answer;
    } catch (problem) {
      if (signal?.aborted) throw problem;
      failed = () => { throw problem; };
    }
    const checked = connection.doubt();
    if (isLast) return failed();
    isLast = !(await checked);
    signal?.throwIfAborted();
  }
}
