import { afterEach, expect, test, vi } from "vitest";
import { forgetWindow, keep, readKept } from "./kept";

afterEach(() => { vi.unstubAllGlobals(); });

test("what is kept is found again, and null forgets it", () => {
  const held = new Map<string, string>();
  vi.stubGlobal("localStorage", { getItem: (name: string) => held.get(name) ?? null, setItem: (name: string, value: string) => held.set(name, value), removeItem: (name: string) => held.delete(name) });

  keep("theme", "dark");
  expect(readKept("theme")).toBe("dark");
  keep("theme", null);
  expect(readKept("theme")).toBeNull();
});

test("what is kept for a window is not kept for always", () => {
  const stores = { localStorage: new Map<string, string>(), sessionStorage: new Map<string, string>() };
  for (const [name, held] of Object.entries(stores)) vi.stubGlobal(name, { getItem: (key: string) => held.get(key) ?? null, setItem: (key: string, value: string) => held.set(key, value), removeItem: (key: string) => held.delete(key), clear: () => held.clear() });

  keep("draft", "{}", { inWindow: true });
  expect([readKept("draft", { inWindow: true }), readKept("draft")]).toEqual(["{}", null]);

  keep("theme", "dark");
  forgetWindow();
  expect([readKept("draft", { inWindow: true }), readKept("theme")]).toEqual([null, "dark"]);
});

test("a browser that keeps nothing is no reason to show nothing", () => {
  vi.stubGlobal("localStorage", new Proxy({}, { get: () => { throw new DOMException("denied", "SecurityError"); } }));

  expect(() => keep("theme", "dark")).not.toThrow();
  expect(readKept("theme")).toBeNull();
});
