import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { ChangeTag } from "@/changes/ChangeTag";
import { useWords } from "@/language/LanguageContext";
import { classOf, digits, type HistoryCapture } from "./calendar";
import { Dot } from "./Dot";

/** Rows that are drawn at first: a page that is captured every hour has thousands a year. */
const AT_FIRST = 200;

const TONES = { "2xx": "good", "3xx": "accent", "4xx": "bad", "5xx": "warn", other: "plain" } as const;

/** Captures as rows; two of them can be chosen and compared. */
export function CaptureList({ captures, caption }: { captures: HistoryCapture[]; caption: string }) {
  const { t, moment, localMoment } = useWords();
  const navigate = useNavigate();
  const [before, chooseBefore] = useState<number>();
  const [after, chooseAfter] = useState<number>();
  const [most, show] = useState(AT_FIRST);
  const pick = (one: HistoryCapture, chosen: number | undefined, choose: (id: number) => void, word: "compare.from" | "compare.to") => (
    <label className="inline-grid size-7 cursor-pointer place-items-center">
      <input type="radio" name={`${caption}-${word}`} checked={chosen === one.snapshotId} onChange={() => choose(one.snapshotId)} aria-label={`${t(word)}: ${moment(one.captureTimestamp)}`} className="size-4 accent-accent" />
    </label>
  );
  const ready = before !== undefined && after !== undefined && before !== after;
  return (
    <div>
      {captures.length > 1 && (
        <div className="mb-2 flex flex-wrap items-center gap-3">
          <Button disabled={!ready} onClick={() => { if (before !== undefined && after !== undefined) void navigate({ to: "/compare", search: { from: before, to: after } }); }}>{t("page.compareChosen")}</Button>
          <span className="text-sm text-soft">{t("page.compareHint")}</span>
        </div>
      )}
      <DataTable
        caption={caption}
        rows={captures.slice(0, most)}
        keyOf={(one) => one.snapshotId}
        empty={<Notice title={t("page.noneLeft")}>{t("page.noneLeftHow")}</Notice>}
        columns={[
          { head: t("page.captured"), cell: (one) => <Link to="/view/$timestamp" params={{ timestamp: digits(one.captureTimestamp) }} search={{ url: one.url }} title={localMoment(one.captureTimestamp)} className="tabular-nums">{moment(one.captureTimestamp)}</Link> },
          { head: t("facet.status"), cell: (one) => <span className="inline-flex items-center gap-2"><Dot status={classOf(one.statusCode)} /><Tag tone={TONES[classOf(one.statusCode)]}>{one.statusCode ?? t("status.other")}</Tag></span> },
          { head: t("page.content"), cell: (one) => <ChangeTag change={one.change} /> },
          { head: t("facet.type"), cell: (one) => <span className="break-all text-soft">{one.mimeType ?? "–"}</span> },
          ...(captures.length > 1 ? [
            { head: t("compare.from"), cell: (one: HistoryCapture) => pick(one, before, chooseBefore, "compare.from") },
            { head: t("compare.to"), cell: (one: HistoryCapture) => pick(one, after, chooseAfter, "compare.to") },
          ] : []),
        ]}
      />
      {captures.length > most && <div className="mt-3"><Button onClick={() => show(most + AT_FIRST)}>{t("search.more", { count: captures.length - most })}</Button></div>}
    </div>
  );
}
