import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Link } from "@tanstack/react-router";
import { buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { readAskedChanges } from "@/changes/asked";
import { readAskedComparison } from "@/compare/asked";
import { readAsked } from "@/search/asked";
import { Problem } from "./Problem";
import { Shell } from "./Shell";

function Missing() {
  const { t } = useWords();
  return (
    <Notice title={t("missing.title")} actions={<Link to="/" className={buttonClass("main")}>{t("app.name")}</Link>}>
      {t("missing.text")}
    </Notice>
  );
}

const root = createRootRoute({ component: Shell, notFoundComponent: Missing, errorComponent: ({ error, reset }) => <Problem problem={error} onAgain={reset} /> });

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

export const router = createRouter({ routeTree: root.addChildren([home, searchRoute, changesRoute, compareRoute, sources]), defaultPreload: "intent", scrollRestoration: true });

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
