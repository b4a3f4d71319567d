import { afterEach, expect, test, vi } from "vitest";
import { keep, readKept } from "./kept";

afterEach(() => { vi.unstubAllGlobals(); });

test("what is kept is found again, and null forgets it", () => {
  const held = new Map<string, string>();
  vi.stubGlobal("localStorage", { getItem: (name: string) => held.get(name) ?? null, setItem: (name: string, value: string) => held.set(name, value), removeItem: (name: string) => held.delete(name) });

  keep("theme", "dark");
  expect(readKept("theme")).toBe("dark");
  keep("theme", null);
  expect(readKept("theme")).toBeNull();
});

test("a browser that keeps nothing is no reason to show nothing", () => {
  vi.stubGlobal("localStorage", new Proxy({}, { get: () => { throw new DOMException("denied", "SecurityError"); } }));

  expect(() => keep("theme", "dark")).not.toThrow();
  expect(readKept("theme")).toBeNull();
});
