import { expect, test } from "vitest";
import { fingerprint, metadata, nextPiece, sendPieces, UploadGone, waitBefore, type Appended, type Watching, type Wire } from "./tus";

const MB = 1 << 20;

/** A server in memory that breaks as it is told to: each entry of `faults` is met by one append. */
class Server implements Wire {
  bytes: Uint8Array[] = [];
  asked: number[] = [];
  isGone = false;
  constructor(readonly size: number, readonly faults: ((piece: Uint8Array) => void)[] = []) {}
  get at() {
    return this.bytes.reduce((sum, part) => sum + part.length, 0);
  }
  private here(): Appended {
    return { offset: this.at, operation: this.at === this.size ? 7 : null };
  }
  async offset() {
    return this.isGone ? null : this.here();
  }
  async append(_id: number, offset: number, piece: Blob) {
    this.asked.push(offset);
    const content = new Uint8Array(await piece.arrayBuffer());
    this.faults.shift()?.(content);
    if (offset !== this.at) throw Object.assign(new Error("offset"), { status: 409 });
    this.bytes.push(content);
    return this.here();
  }
}

function watching(): Watching & { seen: number[]; waits: number[] } {
  const seen: number[] = [];
  const waits: number[] = [];
  return { seen, waits, signal: new AbortController().signal, onProgress: (sent) => seen.push(sent), onWait: (_problem, seconds) => waits.push(seconds), wait: async () => undefined, now: () => 0 };
}

function file(size: number): Blob {
  return new Blob([new Uint8Array(size).map((_, at) => at % 251)]);
}

async function whole(server: Server, of: Blob) {
  const got = new Uint8Array(server.at);
  let at = 0;
  for (const part of server.bytes) {
    got.set(part, at);
    at += part.length;
  }
  expect(Buffer.from(got).equals(Buffer.from(await of.arrayBuffer()))).toBe(true);
}

test("a file is sent in growing pieces, each from where the last ended", async () => {
  const server = new Server(8 * MB);
  const seen = watching();
  expect(await sendPieces(server, 1, file(8 * MB), seen)).toBe(7);
  expect(server.asked).toEqual([0, MB, 3 * MB, 7 * MB]);
  expect(seen.seen).toEqual([0, MB, 3 * MB, 7 * MB, 8 * MB]);
  await whole(server, file(8 * MB));
});

test("what is there already is not sent again", async () => {
  const all = file(3 * MB);
  const server = new Server(3 * MB);
  server.bytes.push(new Uint8Array(await all.slice(0, 2 * MB + 5).arrayBuffer()));
  await sendPieces(server, 1, all, watching());
  expect(server.asked).toEqual([2 * MB + 5]);
  await whole(server, all);
});

test("after a break the server says where to go on: half a piece that arrived counts", async () => {
  const all = file(4 * MB);
  const server: Server = new Server(4 * MB, [
    () => undefined,
    (piece) => {
      server.bytes.push(piece.slice(0, 1000));
      throw new TypeError("network");
    },
    () => { throw Object.assign(new Error("busy"), { status: 503, retryAfter: 5 }); },
  ]);
  const seen = watching();
  await sendPieces(server, 1, all, seen);
  expect(server.asked.slice(0, 4)).toEqual([0, MB, MB + 1000, MB + 1000]);
  expect(seen.waits).toEqual([1, 5]);
  await whole(server, all);
});

test("a refusal ends it at once; a server that stays away ends it after some tries", async () => {
  const refused = new Server(MB, [() => { throw Object.assign(new Error("full"), { status: 403 }); }]);
  await expect(sendPieces(refused, 1, file(MB), watching())).rejects.toThrow("full");
  expect(refused.asked.length).toBe(1);
  const away = new Server(MB, Array.from({ length: 20 }, () => () => { throw new TypeError("network"); }));
  const seen = watching();
  await expect(sendPieces(away, 1, file(MB), seen)).rejects.toThrow("network");
  expect(seen.waits).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
});

test("pieces that a proxy refuses as too large are sent smaller, and stay so", async () => {
  const tooLarge = (piece: Uint8Array) => { if (piece.length > MB) throw Object.assign(new Error("large"), { status: 413 }); };
  const server = new Server(5 * MB, Array.from({ length: 20 }, () => tooLarge));
  expect(await sendPieces(server, 1, file(5 * MB), watching())).toBe(7);
  expect(server.asked).toEqual([0, MB, MB, 2 * MB, 3 * MB, 4 * MB]);
  await whole(server, file(5 * MB));
  const closed = new Server(MB, Array.from({ length: 20 }, () => () => { throw Object.assign(new Error("closed"), { status: 413 }); }));
  await expect(sendPieces(closed, 1, file(MB), watching())).rejects.toThrow("closed");
});

test("an upload that the server let go is told as such, and a whole one is not sent again", async () => {
  const gone = new Server(MB);
  gone.isGone = true;
  await expect(sendPieces(gone, 1, file(MB), watching())).rejects.toBeInstanceOf(UploadGone);
  const whole = new Server(5);
  whole.bytes.push(new Uint8Array(5));
  expect(await sendPieces(whole, 1, file(5), watching())).toBe(7);
  expect(whole.asked).toEqual([]);
});

test("pieces grow while they are quick and shrink when they are slow, between one and 64 MiB", () => {
  expect([nextPiece(MB, 10), nextPiece(64 * MB, 10), nextPiece(8 * MB, 2000), nextPiece(8 * MB, 5000), nextPiece(MB, 9000)]).toEqual([2 * MB, 64 * MB, 8 * MB, 4 * MB, MB]);
  expect([waitBefore(1, undefined), waitBefore(9, undefined), waitBefore(1, 12)]).toEqual([1, 30, 12]);
});

test("metadata is Base64 of UTF-8, and a file is known again by name, size and date", () => {
  expect(metadata({ source: "example", filename: "crawl.warc.gz", name: undefined, strict: "" })).toBe("source ZXhhbXBsZQ==,filename Y3Jhd2wud2FyYy5neg==");
  expect(metadata({ name: "Écho" })).toBe("name w4ljaG8=");
  expect(fingerprint({ name: "a", size: 1, lastModified: 2 }, "s")).not.toBe(fingerprint({ name: "a", size: 1, lastModified: 3 }, "s"));
});
