import { afterEach, expect, test, vi } from "vitest";
import type { Appended } from "./tus";
import { transfers } from "./transfers";
import { createUpload, endUpload, uploadWire } from "./uploadWire";

vi.mock("./uploadWire", () => ({ createUpload: vi.fn(), endUpload: vi.fn(async () => undefined), uploadWire: { offset: vi.fn(), append: vi.fn() } }));

const wished = { source: "ex", isStrict: false };
const file = () => new File(["abc"], "a.warc", { lastModified: 1 });

function promised<T>() {
  const asked: { resolve: (value: T) => void; reject: (problem: unknown) => void }[] = [];
  return { asked, ask: () => new Promise<T>((resolve, reject) => { asked.push({ resolve, reject }); }) };
}

afterEach(async () => {
  for (const one of transfers.current()) await transfers.drop(one.key);
  vi.mocked(endUpload).mockClear();
});

test("a try that was stopped says nothing about the one that follows it", async () => {
  const offsets = promised<Appended | null>();
  vi.mocked(createUpload).mockResolvedValue(7);
  vi.mocked(uploadWire.offset).mockImplementation(offsets.ask);

  transfers.add(file(), wished);
  await vi.waitFor(() => expect(offsets.asked).toHaveLength(1));
  const key = transfers.current()[0]?.key ?? "";
  transfers.pause(key);
  transfers.goOn(key);
  await vi.waitFor(() => expect(offsets.asked).toHaveLength(2));
  offsets.asked[0]?.reject(new DOMException("stopped", "AbortError"));
  offsets.asked[1]?.resolve({ offset: 3, operation: 9 });

  await vi.waitFor(() => expect(transfers.current()[0]).toMatchObject({ state: "sent", operationId: 9 }));
  expect(transfers.current()[0]?.problem).toBeNull();
});

test("what is left off while it begins leaves nothing behind on the server", async () => {
  const begun = promised<number>();
  vi.mocked(createUpload).mockImplementation(begun.ask);

  transfers.add(file(), wished);
  await vi.waitFor(() => expect(begun.asked).toHaveLength(1));
  await transfers.drop(transfers.current()[0]?.key ?? "");
  begun.asked[0]?.resolve(8);

  await vi.waitFor(() => expect(endUpload).toHaveBeenCalledWith(8));
  expect(transfers.current()).toEqual([]);
});
