import { createRouter } from "@tanstack/react-router";
import { readSearch, writeSearch } from "./address";
import { careRoutes } from "./careRoutes";
import { control } from "./controlRoot";
import { crawlRoutes } from "./crawlRoutes";
import { publicRoutes } from "./publicRoutes";
import { PageFailed, root } from "./root";

const routeTree = root.addChildren([...publicRoutes, control.addChildren([...crawlRoutes, ...careRoutes])]);

export const router = createRouter({ routeTree, defaultErrorComponent: PageFailed, defaultPreload: "intent", scrollRestoration: true, parseSearch: readSearch, stringifySearch: writeSearch });

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
