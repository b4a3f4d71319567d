import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "./lazyPage";
import { root } from "./root";

/** The control room: its own menu, and the sign-in for who is not an operator. */
export const control = createRoute({ getParentRoute: () => root, path: "/control", component: lazyPage(() => import("./ControlShell"), "ControlShell") });
