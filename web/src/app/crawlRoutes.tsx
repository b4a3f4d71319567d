import { createRoute } from "@tanstack/react-router";
import { readSpan } from "@/control/charts/span";
import { readAskedFeeds } from "@/control/feeds/asked";
import { readAskedJobs } from "@/control/jobs/asked";
import { readAskedRun } from "@/control/executions/asked";
import { readAskedStart } from "@/control/start/asked";
import { readAskedSources, readSourceView } from "@/control/sources/asked";
import { control } from "./controlRoot";
import { lazyPage } from "./lazyPage";
import { numbered } from "./numbered";
import { only } from "./search";

const under = { getParentRoute: () => control } as const;

export const overviewRoute = createRoute({ ...under, path: "/", validateSearch: only(readSpan), component: lazyPage(() => import("@/control/overview/OverviewPage"), "OverviewPage") });

export const startRoute = createRoute({ ...under, path: "/start", validateSearch: only(readAskedStart), component: lazyPage(() => import("@/control/start/StartPage"), "StartPage") });

export const managedSourcesRoute = createRoute({ ...under, path: "/sources", validateSearch: only(readAskedSources), component: lazyPage(() => import("@/control/sources/SourcesPage"), "ManagedSourcesPage") });

export const newSourceRoute = createRoute({ ...under, path: "/sources/new", validateSearch: only(readSourceView), component: lazyPage(() => import("@/control/sources/SourcePage"), "NewSourcePage") });

export const managedSourceRoute = createRoute({ ...under, path: "/sources/$id", ...numbered, validateSearch: only(readSourceView), component: lazyPage(() => import("@/control/sources/SourcePage"), "SourcePage") });

export const jobsRoute = createRoute({ ...under, path: "/jobs", validateSearch: only(readAskedJobs), component: lazyPage(() => import("@/control/jobs/JobsPage"), "JobsPage") });

export const jobRoute = createRoute({ ...under, path: "/jobs/$id", ...numbered, validateSearch: only(readAskedRun), component: lazyPage(() => import("@/control/jobs/JobPage"), "JobPage") });

export const executionRoute = createRoute({ ...under, path: "/executions/$id", ...numbered, validateSearch: only(readAskedRun), component: lazyPage(() => import("@/control/executions/ExecutionPage"), "ExecutionPage") });

export const feedsRoute = createRoute({ ...under, path: "/feeds", validateSearch: only(readAskedFeeds), component: lazyPage(() => import("@/control/feeds/FeedsPage"), "FeedsPage") });

/** The control room's pages about crawling: overview, sources, jobs, executions, feeds. */
export const crawlRoutes = [overviewRoute, startRoute, managedSourcesRoute, newSourceRoute, managedSourceRoute, jobsRoute, jobRoute, executionRoute, feedsRoute] as const;
