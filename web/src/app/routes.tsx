import { createRouter } from "@tanstack/react-router";
import { careRoutes } from "./careRoutes";
import { control } from "./controlRoot";
import { crawlRoutes } from "./crawlRoutes";
import { publicRoutes } from "./publicRoutes";
import { root } from "./root";

const routeTree = root.addChildren([...publicRoutes, control.addChildren([...crawlRoutes, ...careRoutes])]);

export const router = createRouter({ routeTree, defaultPreload: "intent", scrollRestoration: true });

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
