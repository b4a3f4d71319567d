import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { readAskedDomains, readAskedRobots } from "@/control/domains/asked";
import { readAskedExplain } from "@/control/explain/asked";
import { readAskedFrontier } from "@/control/frontier/asked";
import { readAskedReports } from "@/control/reports/asked";
import { readAskedTakedowns } from "@/control/takedowns/asked";
import { control } from "./controlRoot";

export const frontierRoute = createRoute({
  getParentRoute: () => control,
  path: "/frontier",
  validateSearch: readAskedFrontier,
  component: lazyRouteComponent(() => import("@/control/frontier/FrontierPage"), "FrontierPage"),
});

export const domainsRoute = createRoute({
  getParentRoute: () => control,
  path: "/domains",
  validateSearch: readAskedDomains,
  component: lazyRouteComponent(() => import("@/control/domains/DomainsPage"), "DomainsPage"),
});

export const domainRoute = createRoute({
  getParentRoute: () => control,
  path: "/domains/$domain",
  validateSearch: readAskedRobots,
  component: lazyRouteComponent(() => import("@/control/domains/DomainPage"), "DomainPage"),
});

export const explainRoute = createRoute({
  getParentRoute: () => control,
  path: "/explain",
  validateSearch: readAskedExplain,
  component: lazyRouteComponent(() => import("@/control/explain/ExplainPage"), "ExplainPage"),
});

const imports = createRoute({ getParentRoute: () => control, path: "/imports", component: lazyRouteComponent(() => import("@/control/imports/ImportsPage"), "ImportsPage") });
const index = createRoute({ getParentRoute: () => control, path: "/index", component: lazyRouteComponent(() => import("@/control/index/IndexPage"), "IndexPage") });
const storage = createRoute({ getParentRoute: () => control, path: "/storage", component: lazyRouteComponent(() => import("@/control/storage/StoragePage"), "StoragePage") });

export const takedownsRoute = createRoute({
  getParentRoute: () => control,
  path: "/takedowns",
  validateSearch: readAskedTakedowns,
  component: lazyRouteComponent(() => import("@/control/takedowns/TakedownsPage"), "TakedownsPage"),
});

export const reportsRoute = createRoute({
  getParentRoute: () => control,
  path: "/reports",
  validateSearch: readAskedReports,
  component: lazyRouteComponent(() => import("@/control/reports/ReportsPage"), "ReportsPage"),
});

/** The control room's pages about the archive and its machine: frontier, domains, explain, scheduler, editions, care, administration. */
export const careRoutes = [frontierRoute, domainsRoute, domainRoute, explainRoute, imports, index, storage, takedownsRoute, reportsRoute] as const;
