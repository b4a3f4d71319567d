import { useSyncExternalStore } from "react";
import { keep, readKept } from "@/app/kept";
import { fingerprint, sendPieces, UploadGone } from "./tus";
import { createUpload, endUpload, uploadWire, type Wished } from "./uploadWire";
import { t } from "@/language/control/imports";

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
    const known = Number(readKept(key));
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
    keep(key, null);
    this.list = this.list.filter((found) => found.key !== key);
    this.tell();
    if (one?.uploadId && one.state !== "sent") await endUpload(one.uploadId).catch(() => undefined);
    void this.next();
  }

  private set(key: string, change: Partial<Transfer>): void {
    this.list = this.list.map((one) => (one.key === key ? { ...one, ...change } : one));
    this.tell();
  }

  /** Who closes the window while something is on its way is asked first, on whichever page. */
  private readonly ask = (event: Event) => event.preventDefault();

  private tell(): void {
    const isSending = this.list.some((one) => one.state === "sends" || one.state === "waits");
    if (isSending) globalThis.addEventListener?.("beforeunload", this.ask);
    else globalThis.removeEventListener?.("beforeunload", this.ask);
    for (const listener of this.listeners) listener();
  }

  /** One file after the other: two at once would only make both slower. */
  private async next(): Promise<void> {
    if (this.list.some((one) => one.state === "sends")) return;
    const one = this.list.find((found) => found.state === "waits");
    const held = one && this.held.get(one.key);
    if (!one || !held) return;
    this.set(one.key, { state: "sends" });
    // Of this try alone: it may have been stopped, and another begun, before its end is heard of.
    const stop = new AbortController();
    held.stop = stop;
    try {
      await this.send(one, held, stop.signal);
    } catch (problem) {
      if (!stop.signal.aborted) this.set(one.key, { state: "failed", problem, note: null });
    }
    void this.next();
  }

  private async send(one: Transfer, held: Held, signal: AbortSignal): Promise<void> {
    const id = one.uploadId ?? (await this.begin(one.key, held));
    const started = performance.now();
    let first: number | null = null;
    try {
      const operationId = await sendPieces(uploadWire, id, held.file, {
        signal,
        onProgress: (sent) => {
          first ??= sent;
          this.set(one.key, { sent, note: null, rate: ((sent - first) * 1000) / Math.max(1, performance.now() - started) });
        },
        onWait: (problem, seconds) => this.set(one.key, { note: t("resumesIn", { why: problem instanceof Error ? problem.message : t("broke"), seconds: Math.ceil(seconds) }) }),
        wait: waitFor,
        now: () => performance.now(),
      });
      keep(one.key, null);
      this.set(one.key, { state: "sent", operationId, note: null });
    } catch (problem) {
      if (!(problem instanceof UploadGone) || one.uploadId === null) throw problem;
      // It was remembered from earlier and the server has let it go since: it begins anew.
      keep(one.key, null);
      this.set(one.key, { uploadId: null });
      await this.send({ ...one, uploadId: null }, held, signal);
    }
  }

  private async begin(key: string, held: Held): Promise<number> {
    const id = await createUpload(held.file, held.wished);
    if (this.held.get(key) !== held) {
      // It was left off while it began: what the server keeps for it goes too.
      await endUpload(id).catch(() => undefined);
      throw new DOMException("stopped", "AbortError");
    }
    keep(key, String(id));
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
