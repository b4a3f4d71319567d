import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { gathered } from "../live/calm";
import { POLL_MS, useLive, type Liveness } from "../live/useLive";
import { withLines, type LogEntry } from "./log";

interface Log {
  lines: LogEntry[];
  liveness: Liveness;
  error: unknown;
  /** Nothing follows any more. */
  isOver: boolean;
}

const NONE: LogEntry[] = [];
/** A run may write a hundred lines a second; a page that is drawn for each of them does nothing else. */
const TOGETHER_MS = 250;

/** GET /api/v1/jobs/{id}/logs/stream/v2 of one run; where no stream stands, /logs/tail every few seconds. A run that is over is read once. */
export function useLog(jobId: number, execution: number, isEnded: boolean): Log {
  const queries = useQueryClient();
  const key = ["log", jobId, execution];
  const [over, end] = useState<string | null>(null);
  const isOver = isEnded || over === key.join(" ");
  const news = useMemo(() => gathered<LogEntry>((added) => { queries.setQueryData<LogEntry[]>(["log", jobId, execution], (kept) => withLines(kept ?? NONE, added)); }, TOGETHER_MS), [queries, jobId, execution]);
  useEffect(() => news.stop, [news]);
  const liveness = useLive(isOver ? null : `/api/v1/jobs/${jobId}/logs/stream/v2?execution=${execution}`, {
    "log:line": (data) => { if (data) news.add([data as LogEntry]); },
    "log:replay": (data) => news.add((data as { lines?: LogEntry[] } | null)?.lines ?? NONE),
    "log:archived": () => end(key.join(" ")),
  });
  const tail = useQuery({
    // Read once more when it has ended: its last lines may have come after the stream.
    queryKey: isEnded ? [...key, "whole"] : key,
    placeholderData: queries.getQueryData<LogEntry[]>(key),
    staleTime: 0,
    refetchInterval: liveness === "polling" && !isOver ? POLL_MS : false,
    retry: false,
    queryFn: async ({ signal }) => {
      const view = await body<components["schemas"]["LogView"]>(api.GET("/api/v1/jobs/{id}/logs/tail", { signal, params: { path: { id: jobId }, query: { execution: String(execution) } } }));
      return withLines(queries.getQueryData<LogEntry[]>(key) ?? NONE, view.lines);
    },
  });
  const lines = tail.data ?? NONE;
  return { lines, liveness, error: lines.length === 0 ? tail.error : null, isOver };
}
