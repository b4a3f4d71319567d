import type { Permission } from "@/api/session";
import type { t } from "@/language/control/menu";

/** The English name of a place; the menu says it in the language of the page. */
type Name = Parameters<typeof t>[0];

export interface Place {
  to: string;
  name: Name;
  /** Hidden from who may not do it; the server refuses it all the same. */
  asks: Permission;
}

export interface Part {
  title: Name;
  places: readonly Place[];
}

function part(title: Name, asks: Permission, ...places: (readonly [to: string, name: Name, asks?: Permission])[]): Part {
  return { title, places: places.map(([to, name, own]) => ({ to, name, asks: own ?? asks })) };
}

export const MENU: readonly Part[] = [
  part("Crawling", "watch", ["/control", "Overview"], ["/control/start", "Add a website", "operate"], ["/control/sources", "Sources"], ["/control/jobs", "Jobs"], ["/control/feeds", "Feeds"]),
  part(
    "Planning",
    "watch",
    ["/control/frontier", "Frontier"],
    ["/control/domains", "Domains"],
    ["/control/explain", "Explain", "explain"],
    ["/control/schedules", "Schedules"],
    ["/control/editions", "Editions"],
  ),
  part(
    "Archive",
    "watch",
    ["/control/imports", "Imports", "operate"],
    ["/control/index", "Index"],
    ["/control/storage", "Storage"],
    ["/control/takedowns", "Takedowns", "administer"],
    ["/control/reports", "Reports", "operate"],
  ),
  part(
    "Administration",
    "administer",
    ["/control/users", "Users"],
    ["/control/webhooks", "Webhooks"],
    ["/control/audit", "Audit"],
    ["/control/settings", "Settings"],
    ["/control/health", "Health", "watch"],
  ),
];

/** Return the parts and places that somebody with these permissions can use; a part without any is left out. */
export function menuFor(permissions: readonly Permission[]): Part[] {
  // The room itself is for who may watch, whatever else somebody may do.
  if (!permissions.includes("watch")) return [];
  return MENU.map(({ title, places }) => ({ title, places: places.filter(({ asks }) => permissions.includes(asks)) })).filter(({ places }) => places.length > 0);
}

/** What has pages and no place of its own: a run is reached from its job. */
const BELOW: Record<string, string> = { "/control/executions": "/control/jobs" };

/** Return the place that a path belongs to: the one with the longest beginning of it. */
export function placeOf(asked: string): Place | undefined {
  const all = MENU.flatMap(({ places }) => places);
  const path = Object.entries(BELOW).find(([from]) => asked.startsWith(`${from}/`))?.[1] ?? asked;
  return all.filter(({ to }) => path === to || path.startsWith(`${to}/`)).sort((a, b) => b.to.length - a.to.length)[0];
}

/** Return what a page of the control room asks of its reader: what its place does, and a form for something new the right to create it. */
export function needsOf(path: string): Permission {
  return path === "/control/sources/new" ? "operate" : placeOf(path)?.asks ?? "watch";
}
