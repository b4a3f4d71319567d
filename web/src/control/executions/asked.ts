export const TABS = ["now", "hosts", "urls", "log", "rules", "result"] as const;
export type RunTab = (typeof TABS)[number];

export interface AskedRun {
  tab?: RunTab;
  status?: string;
  host?: string;
  q?: string;
}

/** Read the address bar of a run's or a job's page; what cannot be meant is left out, and the first tab is not said. */
export function readAskedRun(found: Record<string, unknown>): AskedRun {
  const tab = TABS.find((one) => one === found["tab"]);
  const text = (name: "status" | "host" | "q") => (typeof found[name] === "string" && found[name] ? { [name]: found[name] as string } : {});
  return { ...(tab && tab !== "now" ? { tab } : {}), ...text("status"), ...text("host"), ...text("q") };
}
