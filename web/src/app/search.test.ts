import { createMemoryHistory, createRootRoute, createRoute, createRouter } from "@tanstack/react-router";
import { expect, test } from "vitest";
import { readAsked } from "@/search/asked";
import { only } from "./search";

function searchAt(address: string) {
  const root = createRootRoute();
  const search = createRoute({ getParentRoute: () => root, path: "/search", validateSearch: only(readAsked) });
  const router = createRouter({ routeTree: root.addChildren([search]), history: createMemoryHistory({ initialEntries: [address] }) });
  return router.matchRoutes(router.latestLocation).at(-1)?.search;
}

test("what cannot be meant does not come through as it was typed", () => {
  expect(JSON.stringify(searchAt("/search?q=fees&page=-1&sort=bogus&view=captures&from=garbage&evil=1"))).toBe('{"q":"fees"}');
  expect(JSON.stringify(searchAt("/search?q=&language=fr"))).toBe('{"language":"fr"}');
});

test("what is meant stays", () => {
  expect(searchAt("/search?q=2023&page=2&view=snapshots")).toMatchObject({ q: "2023", page: 2, view: "snapshots" });
});
