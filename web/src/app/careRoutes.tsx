import { createRoute, redirect } from "@tanstack/react-router";
import { readAskedAudit } from "@/control/audit/asked";
import { readAskedDomains, readAskedRobots } from "@/control/domains/asked";
import { readAskedEditions } from "@/control/editions/asked";
import { readAskedExplain } from "@/control/explain/asked";
import { readAskedFrontier } from "@/control/frontier/asked";
import { readAskedReports } from "@/control/reports/asked";
import { readAskedSettings } from "@/control/settings/asked";
import { readAskedTakedowns } from "@/control/takedowns/asked";
import { control } from "./controlRoot";
import { lazyPage } from "./lazyPage";
import { numbered } from "./numbered";
import { only } from "./search";

export const frontierRoute = createRoute({
  getParentRoute: () => control,
  path: "/frontier",
  validateSearch: only(readAskedFrontier),
  component: lazyPage(() => import("@/control/frontier/FrontierPage"), "FrontierPage"),
});

export const domainsRoute = createRoute({
  getParentRoute: () => control,
  path: "/domains",
  validateSearch: only(readAskedDomains),
  component: lazyPage(() => import("@/control/domains/DomainsPage"), "DomainsPage"),
});

export const domainRoute = createRoute({
  getParentRoute: () => control,
  path: "/domains/$domain",
  validateSearch: only(readAskedRobots),
  component: lazyPage(() => import("@/control/domains/DomainPage"), "DomainPage"),
});

export const explainRoute = createRoute({
  getParentRoute: () => control,
  path: "/explain",
  validateSearch: only(readAskedExplain),
  component: lazyPage(() => import("@/control/explain/ExplainPage"), "ExplainPage"),
});

const imports = createRoute({ getParentRoute: () => control, path: "/imports", component: lazyPage(() => import("@/control/imports/ImportsPage"), "ImportsPage") });
const index = createRoute({ getParentRoute: () => control, path: "/index", component: lazyPage(() => import("@/control/index/IndexPage"), "IndexPage") });
const storage = createRoute({ getParentRoute: () => control, path: "/storage", component: lazyPage(() => import("@/control/storage/StoragePage"), "StoragePage") });

export const takedownsRoute = createRoute({
  getParentRoute: () => control,
  path: "/takedowns",
  validateSearch: only(readAskedTakedowns),
  component: lazyPage(() => import("@/control/takedowns/TakedownsPage"), "TakedownsPage"),
});

export const reportsRoute = createRoute({
  getParentRoute: () => control,
  path: "/reports",
  validateSearch: only(readAskedReports),
  component: lazyPage(() => import("@/control/reports/ReportsPage"), "ReportsPage"),
});

// The address of before: bookmarks lead on.
const scheduler = createRoute({ getParentRoute: () => control, path: "/scheduler", beforeLoad: () => { throw redirect({ to: "/control/schedules", replace: true }); } });
const schedules = createRoute({ getParentRoute: () => control, path: "/schedules", component: lazyPage(() => import("@/control/scheduler/SchedulerPage"), "SchedulerPage") });

export const editionsRoute = createRoute({
  getParentRoute: () => control,
  path: "/editions",
  validateSearch: only(readAskedEditions),
  component: lazyPage(() => import("@/control/editions/EditionsPage"), "EditionsPage"),
});

export const editionRoute = createRoute({
  getParentRoute: () => control,
  path: "/editions/$id",
  ...numbered,
  component: lazyPage(() => import("@/control/editions/EditionPage"), "EditionPage"),
});

const users = createRoute({ getParentRoute: () => control, path: "/users", component: lazyPage(() => import("@/control/users/UsersPage"), "UsersPage") });
/** Everybody's tokens and sessions are on the account page; this was its second place. */
const sessions = createRoute({ getParentRoute: () => control, path: "/sessions", beforeLoad: () => location.replace("/account"), component: () => null });
const webhooks = createRoute({ getParentRoute: () => control, path: "/webhooks", component: lazyPage(() => import("@/control/webhooks/WebhooksPage"), "WebhooksPage") });
const health = createRoute({ getParentRoute: () => control, path: "/health", component: lazyPage(() => import("@/control/health/HealthPage"), "HealthPage") });

export const userRoute = createRoute({
  getParentRoute: () => control,
  path: "/users/$id",
  ...numbered,
  component: lazyPage(() => import("@/control/users/UserPage"), "UserPage"),
});

export const webhookRoute = createRoute({
  getParentRoute: () => control,
  path: "/webhooks/$id",
  ...numbered,
  component: lazyPage(() => import("@/control/webhooks/WebhookPage"), "WebhookPage"),
});

export const auditRoute = createRoute({
  getParentRoute: () => control,
  path: "/audit",
  validateSearch: only(readAskedAudit),
  component: lazyPage(() => import("@/control/audit/AuditPage"), "AuditPage"),
});

export const settingsRoute = createRoute({
  getParentRoute: () => control,
  path: "/settings",
  validateSearch: only(readAskedSettings),
  component: lazyPage(() => import("@/control/settings/SettingsPage"), "SettingsPage"),
});

/** The control room's pages about the archive and its machine: frontier, domains, explain, scheduler, editions, care, administration. */
export const careRoutes = [
  frontierRoute, domainsRoute, domainRoute, explainRoute,
  scheduler, schedules, editionsRoute, editionRoute,
  imports, index, storage, takedownsRoute, reportsRoute,
  users, userRoute, sessions, webhooks, webhookRoute, auditRoute, settingsRoute, health,
] as const;
