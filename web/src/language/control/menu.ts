import { room } from "../room";

/** The menu of the control room, by its English names. */
export const t = room("menu", {
  "Crawling": "Crawling",
  "Overview": "Overview",
  "Add a website": "Add a website",
  "Sources": "Sources",
  "Jobs": "Jobs",
  "Feeds": "Feeds",
  "Planning": "Planning",
  "Frontier": "Frontier",
  "Domains": "Domains",
  "Explain": "Explain",
  "Schedules": "Schedules",
  "Editions": "Editions",
  "Archive": "Archive",
  "Imports": "Imports",
  "Index": "Index",
  "Storage": "Storage",
  "Takedowns": "Takedowns",
  "Reports": "Reports",
  "Administration": "Administration",
  "Users": "Users",
  "Webhooks": "Webhooks",
  "Audit": "Audit",
  "Settings": "Settings",
  "Health": "Health",
});
