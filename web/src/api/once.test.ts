import { expect, test } from "vitest";
import { once, type UnderWay } from "./once";

test("the same wish while it is under way happens once, another one beside it", async () => {
  const underWay: UnderWay<string> = new Map();
  const done: string[] = [];
  const make = (given: { name: string }) => once(underWay, given, async () => {
    await Promise.resolve();
    done.push(given.name);
    return `${given.name} ${String(done.length)}`;
  });
  expect(await Promise.all([make({ name: "a" }), make({ name: "a" }), make({ name: "b" })])).toEqual(["a 1", "a 1", "b 2"]);
  expect(done).toEqual(["a", "b"]);
  expect(await make({ name: "a" })).toBe("a 3");
});

test("what failed can be tried again", async () => {
  const underWay: UnderWay<string> = new Map();
  await expect(once(underWay, undefined, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await once(underWay, undefined, () => Promise.resolve("yes"))).toBe("yes");
});
