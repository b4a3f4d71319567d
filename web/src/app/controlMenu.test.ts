import { expect, test } from "vitest";
import { MENU, menuFor, needsOf, placeOf } from "./controlMenu";

const names = (permissions: Parameters<typeof menuFor>[0]) => menuFor(permissions).map(({ title, places }) => [title, places.length]);

test("everybody finds what they may use, and no more", () => {
  expect(names(["read", "own_account", "explain", "watch", "operate", "administer"])).toEqual([["Crawling", 5], ["Planning", 5], ["Archive", 5], ["Administration", 5]]);
  expect(names(["read", "own_account", "explain", "watch", "operate"])).toEqual([["Crawling", 5], ["Planning", 5], ["Archive", 4], ["Administration", 1]]);
  expect(names(["read", "explain", "watch"])).toEqual([["Crawling", 4], ["Planning", 5], ["Archive", 2], ["Administration", 1]]);
  expect(names(["read", "own_account"])).toEqual([]);
});

test("a page below a place belongs to it, a run to the jobs", () => {
  expect(placeOf("/control/jobs/7")?.name).toBe("Jobs");
  expect(placeOf("/control")?.name).toBe("Overview");
  expect(placeOf("/control/executions/3")?.name).toBe("Jobs");
  expect(placeOf("/search")).toBeUndefined();
});

test("no place is named twice", () => {
  const all = MENU.flatMap(({ places }) => places.map(({ to }) => to));
  expect(new Set(all).size).toBe(all.length);
});

test("a page asks for what its place asks for", () => {
  expect(["/control", "/control/users/4", "/control/imports", "/control/explain", "/control/sources/3", "/control/sources/new"].map(needsOf)).toEqual(["watch", "administer", "operate", "explain", "watch", "operate"]);
});
