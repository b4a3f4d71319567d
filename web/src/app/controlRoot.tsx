import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { root } from "./root";

/** The control room: its own menu, and the sign-in for who is not an operator. */
export const control = createRoute({ getParentRoute: () => root, path: "/control", component: lazyRouteComponent(() => import("./ControlShell"), "ControlShell") });
