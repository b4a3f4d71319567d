import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { connection } from "@/api/connection";
import { listen } from "./stream";

export type Liveness = "live" | "polling";
/** How often a page asks where no stream stands. */
export const POLL_MS = 5000;

/** What a query of a page that is shown live asks by itself: nothing while the stream tells it. */
export function pollEvery(liveness: Liveness): number | false {
  return liveness === "live" ? false : POLL_MS;
}

/**
 * Listen to a stream of the server (`/api/crawler/events` …) while the page is looked at; `null` listens to nothing.
 * A hidden tab lets go of it: browsers open six connections to one server, and four forgotten tabs would hold them all.
 */
export function useLive(path: string | null, listeners: Record<string, (data: unknown) => void>): Liveness {
  const [isLive, setLive] = useState(false);
  const isSeen = useIsSeen();
  const queries = useQueryClient();
  const current = useRef(listeners);
  useEffect(() => { current.current = listeners; });
  const names = Object.keys(listeners).join(" ");
  useEffect(() => {
    if (!path || !isSeen) return undefined;
    const close = listen(path, names.split(" "), {
      event: (name, data) => current.current[name]?.(data),
      live: (isNow) => {
        setLive(isNow);
        if (isNow) connection.answered();
        else void connection.doubt();
      },
      // Whatever is asked next is refused, and the refusal leads to the sign-in.
      revoked: () => void queries.invalidateQueries(),
    });
    return () => {
      close();
      setLive(false);
    };
  }, [path, names, isSeen, queries]);
  return isLive ? "live" : "polling";
}

function useIsSeen(): boolean {
  const [isSeen, see] = useState(() => document.visibilityState !== "hidden");
  useEffect(() => {
    const look = () => see(document.visibilityState !== "hidden");
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  return isSeen;
}
