import { t } from "@/language/control/overview";
import { ago } from "../charts/format";
import type { Host } from "./useOverview";

/** Return in a sentence what a host with something queued waits for; null if it is being asked, or may be at once. */
export function whyItWaits(host: Host, now: number): string | null {
  const next = moment(host.nextAllowedAt);
  const due = moment(host.dueAt);
  switch (host.state) {
    case "forbidden": return t("host.forbidden");
    case "paused": return t("host.paused");
    case "unreachable": return host.unreachableSince ? t("host.unreachableSince", { time: ago(Date.parse(host.unreachableSince), now), again: again(next, now) }) : t("host.unreachable", { again: again(next, now) });
    case "active": return null;
    default: break;
  }
  if (host.circuit === "open") return t("host.circuit", { count: host.circuitFailures, again: again(next, now) });
  if (host.slowDown > 1 && next > now) return t("host.slow", { times: host.slowDown, again: again(next, now) });
  if (next > now + 1000) return t("host.delay", { again: again(next, now) });
  if (due > now + 1000) return t("host.later", { again: again(due, now) });
  return null;
}

function again(at: number, now: number): string {
  return at > now ? t("host.again", { time: ago(at, now) }) : t("host.soon");
}

function moment(at: string | null | undefined): number {
  return at ? Date.parse(at) : 0;
}
