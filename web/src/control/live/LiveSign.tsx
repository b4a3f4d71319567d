import { Radio, RefreshCw } from "lucide-react";
import { useAwaySince } from "@/app/ConnectionBar";
import { POLL_MS, type Liveness } from "./useLive";
import { t } from "@/language/control/common";

/** Says how fresh the page is: told by the server as it happens, or asked for every few seconds. */
export function LiveSign({ liveness }: { liveness: Liveness }) {
  const isAway = useAwaySince() !== null;
  const Icon = liveness === "live" ? Radio : RefreshCw;
  return (
    <span role="status" className="inline-flex min-h-6 min-w-28 items-center gap-1.5 rounded-full border border-line bg-sheet px-2.5 py-0.5 text-sm text-soft" title={liveness === "live" ? t("liveHow") : t("pollHow")}>
      <Icon aria-hidden className={`size-4 ${liveness === "live" ? "text-good" : "text-warn"}`} />
      {liveness === "live" ? t("live") : isAway ? t("noConnection") : t("every", { seconds: POLL_MS / 1000 })}
    </span>
  );
}
