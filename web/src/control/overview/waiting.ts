import { ago, counted } from "../charts/format";
import type { Host } from "./useOverview";

/** Return in a sentence what a host with something queued waits for; null if it is being asked, or may be at once. */
export function whyItWaits(host: Host, now: number): string | null {
  const next = moment(host.nextAllowedAt);
  const due = moment(host.dueAt);
  switch (host.state) {
    case "forbidden": return "An operator forbade it: what is queued ends.";
    case "paused": return "An operator paused it.";
    case "unreachable": return `It does not answer${host.unreachableSince ? ` (since ${ago(Date.parse(host.unreachableSince), now)})` : ""}; ${again(next, now)}`;
    case "active": return null;
    default: break;
  }
  if (host.circuit === "open") return `Its circuit is open after ${counted(host.circuitFailures, "failure")} in a row; ${again(next, now)}`;
  if (host.slowDown > 1 && next > now) return `Its server asked us to slow down (${host.slowDown} times the delay); ${again(next, now)}`;
  if (next > now + 1000) return `Its delay has not passed; ${again(next, now)}`;
  if (due > now + 1000) return `What is queued is to be tried later; ${again(due, now)}`;
  return null;
}

function again(at: number, now: number): string {
  return at > now ? `asked again ${ago(at, now)}.` : "asked again soon.";
}

function moment(at: string | null | undefined): number {
  return at ? Date.parse(at) : 0;
}
