import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { api, body } from "@/api/client";
import { ApiProblem } from "@/api/problem";
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

/** GET /api/v1/jobs/{id}/logs/stream/v2; where no stream stands, /logs/tail every few seconds. */
export function useLog(jobId: number, execution: number | "latest"): Log {
  const queries = useQueryClient();
  const key = ["log", jobId, execution];
  const [over, end] = useState<string | null>(null);
  const isOver = over === key.join(" ");
  const news = useMemo(() => gathered<LogEntry>((added) => { queries.setQueryData<LogEntry[]>(["log", jobId, execution], (kept) => withLines(kept ?? NONE, added)); }, TOGETHER_MS), [queries, jobId, execution]);
  useEffect(() => news.stop, [news]);
  const liveness = useLive(isOver ? null : `/api/v1/jobs/${jobId}/logs/stream/v2?execution=${execution}`, {
    "log:line": (data) => { if (data) news.add([data as LogEntry]); },
    "log:replay": (data) => news.add((data as { lines?: LogEntry[] } | null)?.lines ?? NONE),
    "log:archived": () => { if (execution !== "latest") end(key.join(" ")); },
  });
  const tail = useQuery({
    queryKey: key,
    staleTime: 0,
    refetchInterval: liveness === "polling" && !isOver ? POLL_MS : false,
    retry: false,
    queryFn: async ({ signal }) => {
      const view = await body<components["schemas"]["LogView"]>(api.GET("/api/v1/jobs/{id}/logs/tail", { signal, params: { path: { id: jobId }, query: { execution: String(execution) } } }));
      return withLines(queries.getQueryData<LogEntry[]>(key) ?? NONE, view.lines);
    },
  });
  const lines = tail.data ?? NONE;
  // A job that has not run yet has no newest run: that is no error.
  const isNone = execution === "latest" && tail.error instanceof ApiProblem && tail.error.status === 404;
  return { lines, liveness, error: lines.length === 0 && !isNone ? tail.error : null, isOver };
}
