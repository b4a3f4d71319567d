export const TABS = ["now", "urls", "errors", "hosts", "log", "rules", "result"] as const;
export type RunTab = (typeof TABS)[number];

export interface AskedRun {
  tab?: RunTab;
  status?: string;
  kind?: string;
  reason?: string;
  host?: string;
  q?: string;
}

const WORDS = ["status", "kind", "reason", "host", "q"] as const;

/** Read the address bar of a run's page; what cannot be meant is left out. Without a tab, the run's state decides which is open. */
export function readAskedRun(found: Record<string, unknown>): AskedRun {
  const tab = TABS.find((one) => one === found["tab"]);
  const words = WORDS.filter((name) => typeof found[name] === "string" && found[name]).map((name) => [name, found[name]]);
  return { ...(tab ? { tab } : {}), ...Object.fromEntries(words) } as AskedRun;
}
