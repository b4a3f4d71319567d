import { Radio, RefreshCw } from "lucide-react";
import { useAwaySince } from "@/app/ConnectionBar";
import { POLL_MS, type Liveness } from "./useLive";

/** Says how fresh the page is: told by the server as it happens, or asked for every few seconds. */
export function LiveSign({ liveness }: { liveness: Liveness }) {
  const isAway = useAwaySince() !== null;
  const Icon = liveness === "live" ? Radio : RefreshCw;
  return (
    <span role="status" className="inline-flex min-h-6 min-w-28 items-center gap-1.5 rounded-full border border-line bg-sheet px-2.5 py-0.5 text-sm text-soft" title={liveness === "live" ? "The server tells this page what happens, as it happens." : "No live stream just now: the page asks again by itself."}>
      <Icon aria-hidden className={`size-4 ${liveness === "live" ? "text-good" : "text-warn"}`} />
      {liveness === "live" ? "Live" : isAway ? "No connection" : `Every ${POLL_MS / 1000} s`}
    </span>
  );
}
