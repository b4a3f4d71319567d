import { afterEach, expect, test, vi } from "vitest";
import { loadPart, PartMissing, reloadOnce } from "./lazyPage";

afterEach(() => { vi.unstubAllGlobals(); });

test("a part is loaded when the server is back", async () => {
  const load = vi.fn<() => Promise<string>>().mockRejectedValueOnce(new TypeError()).mockRejectedValueOnce(new TypeError()).mockResolvedValue("page");

  expect(await loadPart(load, "JobsPage", async () => true)).toBe("page");
});

test("a part that a server does not have is missing after a second try", async () => {
  const load = vi.fn(() => Promise.reject(new TypeError("404")));

  await expect(loadPart(load, "JobsPage", async () => false)).rejects.toThrow(PartMissing);
  expect(load).toHaveBeenCalledTimes(2);
});

test("a window reloads once for a part of a version", () => {
  const held = new Map<string, string>();
  let script = "/assets/index-1.js";
  vi.stubGlobal("sessionStorage", { getItem: (name: string) => held.get(name) ?? null, setItem: (name: string, value: string) => held.set(name, value) });
  vi.stubGlobal("document", { querySelector: () => ({ src: script }) });
  const reload = vi.fn();

  expect([reloadOnce("JobsPage", reload), reloadOnce("JobsPage", reload)]).toEqual([true, false]);
  script = "/assets/index-2.js";
  expect(reloadOnce("JobsPage", reload)).toBe(true);
  expect(reload).toHaveBeenCalledTimes(2);
});

test("a browser that keeps nothing never reloads by itself", () => {
  vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => { throw new DOMException("denied"); } });
  vi.stubGlobal("document", { querySelector: () => null });

  expect(reloadOnce("JobsPage", () => { throw new Error("reloaded"); })).toBe(false);
});
