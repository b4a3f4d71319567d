import { createRoute } from "@tanstack/react-router";
import { readAskedChanges } from "@/changes/asked";
import { readAskedComparison } from "@/compare/asked";
import { readAskedSite } from "@/compare/site";
import { readAskedEdition } from "@/editions/asked";
import { readAskedPage } from "@/page/asked";
import { readAsked } from "@/search/asked";
import { readAskedView } from "@/view/asked";
import { lazyPage } from "./lazyPage";
import { root } from "./root";
import { only } from "./search";

// `only` keeps the router from handing on what else stands in an address, and what was left out of it.
const home = createRoute({ getParentRoute: () => root, path: "/", component: lazyPage(() => import("@/home/HomePage"), "HomePage") });

export const searchRoute = createRoute({
  getParentRoute: () => root,
  path: "/search",
  validateSearch: only(readAsked),
  component: lazyPage(() => import("@/search/SearchPage"), "SearchPage"),
});

export const changesRoute = createRoute({
  getParentRoute: () => root,
  path: "/changes",
  validateSearch: only(readAskedChanges),
  component: lazyPage(() => import("@/changes/ChangesPage"), "ChangesPage"),
});

export const compareRoute = createRoute({
  getParentRoute: () => root,
  path: "/compare",
  validateSearch: only(readAskedComparison),
  component: lazyPage(() => import("@/compare/ComparePage"), "ComparePage"),
});

export const siteRoute = createRoute({
  getParentRoute: () => root,
  path: "/compare/site",
  validateSearch: only(readAskedSite),
  component: lazyPage(() => import("@/compare/SitePage"), "SitePage"),
});

const editions = createRoute({ getParentRoute: () => root, path: "/editions", component: lazyPage(() => import("@/editions/EditionsPage"), "EditionsPage") });

export const editionRoute = createRoute({
  getParentRoute: () => root,
  path: "/editions/$source/$year",
  validateSearch: only(readAskedEdition),
  component: lazyPage(() => import("@/editions/EditionPage"), "EditionPage"),
});

export const pageRoute = createRoute({
  getParentRoute: () => root,
  path: "/page",
  validateSearch: only(readAskedPage),
  component: lazyPage(() => import("@/page/PagePage"), "PagePage"),
});

export const viewRoute = createRoute({
  getParentRoute: () => root,
  path: "/view/$timestamp",
  validateSearch: only(readAskedView),
  staticData: { isWide: true },
  component: lazyPage(() => import("@/view/ViewPage"), "ViewPage"),
});

export const sourceRoute = createRoute({ getParentRoute: () => root, path: "/sources/$code", component: lazyPage(() => import("@/sources/SourcePage"), "SourcePage") });

const sources = createRoute({ getParentRoute: () => root, path: "/sources", component: lazyPage(() => import("@/sources/SourcesPage"), "SourcesPage") });

/** What everybody sees. */
export const publicRoutes = [home, searchRoute, changesRoute, compareRoute, siteRoute, editions, editionRoute, pageRoute, viewRoute, sourceRoute, sources] as const;

declare module "@tanstack/react-router" {
  interface StaticDataRouteOption {
    /** Whether the page takes the whole window below the header, as an archived page does. */
    isWide?: boolean;
  }
}
