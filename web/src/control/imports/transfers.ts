import { useSyncExternalStore } from "react";
import { fingerprint, sendPieces, UploadGone } from "./tus";
import { createUpload, endUpload, uploadWire, type Wished } from "./uploadWire";

export interface Transfer {
  key: string;
  name: string;
  size: number;
  source: string;
  sent: number;
  /** Bytes a second of this transfer, since it last began. */
  rate: number;
  state: "waits" | "sends" | "paused" | "sent" | "failed";
  uploadId: number | null;
  operationId: number | null;
  note: string | null;
  problem: unknown;
}

interface Held {
  file: File;
  wished: Wished;
  stop: AbortController | null;
}

/** Files on their way. They live outside the page, so that going to another page of the control room stops none;
 *  after a reload a file is chosen again and goes on where the server is, for its upload is remembered here. */
class Transfers {
  private list: Transfer[] = [];
  private readonly held = new Map<string, Held>();
  private readonly listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  readonly current = () => this.list;

  add(file: File, wished: Wished): void {
    const key = fingerprint(file, wished.source);
    if (this.list.some((one) => one.key === key && one.state !== "failed" && one.state !== "sent")) return;
    const known = Number(localStorage.getItem(key));
    this.held.set(key, { file, wished, stop: null });
    this.list = [...this.list.filter((one) => one.key !== key), { key, name: file.name, size: file.size, source: wished.source, sent: 0, rate: 0, state: "waits", uploadId: known || null, operationId: null, note: null, problem: null }];
    this.tell();
    void this.next();
  }

  pause(key: string): void {
    this.held.get(key)?.stop?.abort();
    this.set(key, { state: "paused", note: null });
    void this.next();
  }

  goOn(key: string): void {
    this.set(key, { state: "waits", problem: null, note: null });
    void this.next();
  }

  /** Leave it off; what arrived of it is removed. */
  async drop(key: string): Promise<void> {
    const one = this.list.find((found) => found.key === key);
    this.held.get(key)?.stop?.abort();
    this.held.delete(key);
    localStorage.removeItem(key);
    this.list = this.list.filter((found) => found.key !== key);
    this.tell();
    if (one?.uploadId && one.state !== "sent") await endUpload(one.uploadId).catch(() => undefined);
    void this.next();
  }

  private set(key: string, change: Partial<Transfer>): void {
    this.list = this.list.map((one) => (one.key === key ? { ...one, ...change } : one));
    this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }

  /** One file after the other: two at once would only make both slower. */
  private async next(): Promise<void> {
    if (this.list.some((one) => one.state === "sends")) return;
    const one = this.list.find((found) => found.state === "waits");
    const held = one && this.held.get(one.key);
    if (!one || !held) return;
    this.set(one.key, { state: "sends" });
    try {
      await this.send(one, held);
    } catch (problem) {
      if (!held.stop?.signal.aborted) this.set(one.key, { state: "failed", problem, note: null });
    }
    void this.next();
  }

  private async send(one: Transfer, held: Held): Promise<void> {
    const stop = new AbortController();
    held.stop = stop;
    const id = one.uploadId ?? (await this.begin(one.key, held));
    const started = performance.now();
    let first: number | null = null;
    try {
      const operationId = await sendPieces(uploadWire, id, held.file, {
        signal: stop.signal,
        onProgress: (sent) => {
          first ??= sent;
          this.set(one.key, { sent, note: null, rate: ((sent - first) * 1000) / Math.max(1, performance.now() - started) });
        },
        onWait: (problem, seconds) => this.set(one.key, { note: `${problem instanceof Error ? problem.message : "The connection broke"}; goes on in ${Math.ceil(seconds)} s` }),
        wait: waitFor,
        now: () => performance.now(),
      });
      localStorage.removeItem(one.key);
      this.set(one.key, { state: "sent", operationId, note: null });
    } catch (problem) {
      if (!(problem instanceof UploadGone) || one.uploadId === null) throw problem;
      // It was remembered from earlier and the server has let it go since: it begins anew.
      localStorage.removeItem(one.key);
      this.set(one.key, { uploadId: null });
      await this.send({ ...one, uploadId: null }, held);
    }
  }

  private async begin(key: string, held: Held): Promise<number> {
    const id = await createUpload(held.file, held.wished);
    localStorage.setItem(key, String(id));
    this.set(key, { uploadId: id });
    return id;
  }
}

function waitFor(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("stopped", "AbortError"));
    }, { once: true });
  });
}

export const transfers = new Transfers();

export function useTransfers(): Transfer[] {
  return useSyncExternalStore(transfers.subscribe, transfers.current);
}
