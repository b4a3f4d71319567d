import { expect, test } from "vitest";
import { joined, readAskedSite, readLines } from "./site";

const page = (type: string, url: string) => JSON.stringify({ type, url, fromUrl: null, fromSnapshotId: 1, toSnapshotId: 2 });

test("pages come before the counts, and what is no line of ours is passed over", () => {
  const found = readLines(`${page("new", "https://e/a")}\n${page("melted", "https://e/b")}\n{"counts":{"new":1},"next":"7"}\n`);
  expect(found.differences.map((one) => one.url)).toEqual(["https://e/a"]);
  expect([found.counts, found.next]).toEqual([{ new: 1 }, "7"]);
});

test("the counts of two answers add up", () => {
  const one = readLines(`${page("new", "https://e/a")}\n{"counts":{"new":1,"gone":2},"next":"7"}`);
  const more = readLines(`${page("gone", "https://e/b")}\n{"counts":{"gone":1},"next":null}`);
  expect(joined(one, more)).toMatchObject({ counts: { new: 1, gone: 3 }, next: null });
  expect(joined(one, more).differences.length).toBe(2);
});

test("what cannot be meant is left out of the address", () => {
  expect(readAskedSite({ source: 4, from: "-1", to: "x", kind: "evil" })).toEqual({});
  expect(readAskedSite({ source: "hc", of: "editions", from: 2025, to: 2026, kind: "withdrawn" })).toEqual({ source: "hc", of: "editions", from: 2025, to: 2026, kind: "withdrawn" });
  expect(readAskedSite({ of: "planets" })).toEqual({});
  expect(readAskedSite({ source: "hc", from: "1", to: 2, kind: "moved" })).toEqual({ source: "hc", from: 1, to: 2, kind: "moved" });
});
