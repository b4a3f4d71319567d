import { Download, Pause, Play } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Problem } from "@/app/Problem";
import { Button, buttonClass } from "@/design/Button";
import { SelectField, TextField } from "@/design/Field";

import { LiveSign } from "../live/LiveSign";
import { fieldsOf, LEVELS, linesSince, shownLines, type Level, type LogEntry } from "./log";
import { useLog } from "./useLog";
import { t } from "@/language/control/executions";

const LOOKS: Record<string, string> = { error: "text-bad font-semibold", warning: "text-warn font-semibold", debug: "text-soft" };
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" });

/** The log of a run as it is written: by level, searched, held still, or taken home whole. */
export function LogView({ jobId, execution, isEnded }: { jobId: number; execution: number; isEnded: boolean }) {
  const [least, choose] = useState<Level>("info");
  const [search, type] = useState("");
  const [held, hold] = useState<LogEntry[] | null>(null);
  const { lines: newest, liveness, error, isOver } = useLog(jobId, execution, isEnded);
  const isHeld = held !== null;
  const lines = held ?? newest;
  const shown = shownLines(lines, least, search);
  const counted = shown.length < lines.length ? t("linesOf", { count: shown.length, all: lines.length }) : t("lines", { count: shown.length });
  return (
    <div className="space-y-3">
      <div className="grid items-end gap-3 sm:grid-cols-[12rem_1fr_auto_auto]">
        <SelectField label={t("level")} value={least} onChange={(event) => choose(event.target.value as Level)}>
          {LEVELS.map((level) => <option key={level} value={level}>{t(`level.${level}`)}</option>)}
        </SelectField>
        <TextField label={t("searchLog")} type="search" value={search} onChange={(event) => type(event.target.value)} />
        <Button aria-pressed={isHeld} onClick={() => hold(isHeld ? null : newest)}>{isHeld ? <Play aria-hidden className="size-4" /> : <Pause aria-hidden className="size-4" />}{isHeld ? t("follow") : t("hold")}</Button>
        <a href={`/api/v1/jobs/${jobId}/logs/download?execution=${execution}`} download className={buttonClass()}><Download aria-hidden className="size-4" />{t("download")}</a>
      </div>
      <p className="flex flex-wrap items-center gap-3 text-sm text-soft">
        {isOver ? <span>{t("ended")}</span> : <LiveSign liveness={liveness} />}
        <span role="status">{isHeld ? t("heldLines", { lines: counted, count: linesSince(newest, lines) }) : counted}</span>
      </p>
      {error ? <Problem problem={error} /> : null}
      <Lines lines={shown} isHeld={isHeld} />
    </div>
  );
}

function Lines({ lines, isHeld }: { lines: LogEntry[]; isHeld: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const place = box.current;
    // Only for who is at the end: who reads further up must not lose the place.
    if (place && follows.current && !isHeld) place.scrollTop = place.scrollHeight;
  }, [lines, isHeld]);
  return (
    <div ref={box} tabIndex={0} role="log" aria-label={t("logLines")} aria-live="off" className="h-96 overflow-auto rounded-part border border-line bg-sunk p-2 font-mono text-xs"
      onScroll={(event) => { const at = event.currentTarget; follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < 40; }}>
      {lines.length === 0 && <p className="font-sans text-sm text-soft">{t("noLines")}</p>}
      <ol>
        {lines.map((line) => (
          <li key={line.id} className="py-0.5 break-all">
            <time dateTime={line.timestamp} title={new Date(line.timestamp).toLocaleString()} className="text-soft">{TIME.format(new Date(line.timestamp))}</time>{" "}
            <span className={LOOKS[line.level] ?? ""}>{line.level}</span> <span>{line.message}</span> <span className="text-soft">{fieldsOf(line)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}
