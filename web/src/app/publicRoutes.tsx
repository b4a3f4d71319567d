import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { readAskedChanges } from "@/changes/asked";
import { readAskedComparison } from "@/compare/asked";
import { readAskedSite } from "@/compare/site";
import { readAskedEdition } from "@/editions/asked";
import { readAskedPage } from "@/page/asked";
import { readAsked } from "@/search/asked";
import { readAskedView } from "@/view/asked";
import { root } from "./root";

// `validateSearch` gives the types. The router hands on what else stands in an address, too, and what was left out of it: every page reads its question once more.
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

export const siteRoute = createRoute({
  getParentRoute: () => root,
  path: "/compare/site",
  validateSearch: readAskedSite,
  component: lazyRouteComponent(() => import("@/compare/SitePage"), "SitePage"),
});

const editions = createRoute({ getParentRoute: () => root, path: "/editions", component: lazyRouteComponent(() => import("@/editions/EditionsPage"), "EditionsPage") });

export const editionRoute = createRoute({
  getParentRoute: () => root,
  path: "/editions/$source/$year",
  validateSearch: readAskedEdition,
  component: lazyRouteComponent(() => import("@/editions/EditionPage"), "EditionPage"),
});

export const pageRoute = createRoute({
  getParentRoute: () => root,
  path: "/page",
  validateSearch: readAskedPage,
  component: lazyRouteComponent(() => import("@/page/PagePage"), "PagePage"),
});

export const viewRoute = createRoute({
  getParentRoute: () => root,
  path: "/view/$timestamp",
  validateSearch: readAskedView,
  staticData: { isWide: true },
  component: lazyRouteComponent(() => import("@/view/ViewPage"), "ViewPage"),
});

export const sourceRoute = createRoute({ getParentRoute: () => root, path: "/sources/$code", component: lazyRouteComponent(() => import("@/sources/SourcePage"), "SourcePage") });

const sources = createRoute({ getParentRoute: () => root, path: "/sources", component: lazyRouteComponent(() => import("@/sources/SourcesPage"), "SourcesPage") });

/** What everybody sees. */
export const publicRoutes = [home, searchRoute, changesRoute, compareRoute, siteRoute, editions, editionRoute, pageRoute, viewRoute, sourceRoute, sources] as const;

declare module "@tanstack/react-router" {
  interface StaticDataRouteOption {
    /** Whether the page takes the whole window below the header, as an archived page does. */
    isWide?: boolean;
  }
}
