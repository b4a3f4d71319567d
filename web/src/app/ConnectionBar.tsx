import { useQueryClient } from "@tanstack/react-query";
import { useRouterState } from "@tanstack/react-router";
import { CloudOff } from "lucide-react";
import { useCallback, useSyncExternalStore } from "react";
import { connection } from "@/api/connection";
import { oldestFailed } from "@/api/oldestFailed";
import { Button } from "@/design/Button";
import { useWords } from "@/language/LanguageContext";

/** When the server last answered, while it does not answer; null while it does. */
export function useAwaySince(): number | null {
  return useSyncExternalStore(connection.subscribe, connection.since);
}

/** Says on every page when what it shows is old, and since when. It clears by itself. */
export function ConnectionBar() {
  const { t, date } = useWords();
  const away = useAwaySince();
  const queries = useQueryClient().getQueryCache();
  const old = useSyncExternalStore(useCallback((listener) => queries.subscribe(listener), [queries]), () => oldestFailed(queries.getAll()));
  const isOpening = useRouterState({ select: (state) => state.status === "pending" });
  const since = away ?? old;
  const time = since === null ? "" : date(new Date(since), { dateStyle: undefined, timeStyle: "long", hourCycle: "h23" });
  return (
    <div role="status" className={since === null ? "sr-only" : "sticky top-0 z-20 flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-warn bg-warn-wash px-4 py-1.5 text-ink"}>
      {since !== null && (
        <>
          <CloudOff aria-hidden className="size-5 shrink-0 text-warn" />
          <p className="min-w-0 grow basis-60"><strong>{t(away === null ? "connection.failed" : "connection.away")}</strong> {t("connection.since", { time })} {t(isOpening && away !== null ? "connection.opening" : "connection.again")}</p>
          {away !== null && <Button className="min-h-8 py-0" onClick={() => connection.tryNow()}>{t("connection.now")}</Button>}
        </>
      )}
    </div>
  );
}
