import { Outlet } from "@tanstack/react-router";

/** What stands around every page of the control room. */
export function ControlShell() {
  return <Outlet />;
}
