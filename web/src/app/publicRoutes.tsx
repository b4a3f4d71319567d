import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { readAskedChanges } from "@/changes/asked";
import { readAskedComparison } from "@/compare/asked";
import { readAsked } from "@/search/asked";
import { root } from "./root";

const home = createRoute({ getParentRoute: () => root, path: "/", component: lazyRouteComponent(() => import("@/home/HomePage"), "HomePage") });

export const searchRoute = createRoute({
  getParentRoute: () => root,
  path: "/search",
  validateSearch: readAsked,
  component: lazyRouteComponent(() => import("@/search/SearchPage"), "SearchPage"),
});

export const changesRoute = createRoute({
  getParentRoute: () => root,
  path: "/changes",
  validateSearch: readAskedChanges,
  component: lazyRouteComponent(() => import("@/changes/ChangesPage"), "ChangesPage"),
});

export const compareRoute = createRoute({
  getParentRoute: () => root,
  path: "/compare",
  validateSearch: readAskedComparison,
  component: lazyRouteComponent(() => import("@/compare/ComparePage"), "ComparePage"),
});

const sources = createRoute({ getParentRoute: () => root, path: "/sources", component: lazyRouteComponent(() => import("@/sources/SourcesPage"), "SourcesPage") });

/** What everybody sees. */
export const publicRoutes = [home, searchRoute, changesRoute, compareRoute, sources] as const;
