import { Link } from "@tanstack/react-router";
import { Moment } from "@/control/live/Moment";
import { bytes } from "@/control/charts/format";
import { outcomeTone, outcomeWord } from "@/control/executions/outcomes";
import { plain, sentence } from "@/control/page/words";
import { useMay } from "@/app/useSession";
import { Button } from "@/design/Button";
import { Tag } from "@/design/Tag";
import { capturesSaid, seenSaid } from "./said";
import type { Explanation, useExplanation } from "./useExplanation";
import { t } from "@/language/control/explain";
import { withParts } from "@/language/room";

/** Every attempt on the page, newest first. */
export function Attempts({ list }: { list: ReturnType<typeof useExplanation> }) {
  const mayWatch = useMay("watch");
  if (list.attempts.length === 0) return <p>{t("noAttempt")}</p>;
  return (
    <>
      <ul className="divide-y divide-line">
        {list.attempts.map((attempt) => (
          <li key={attempt.id} className="py-2">
            <p className="flex flex-wrap items-baseline gap-x-3">
              <Tag tone={outcomeTone(attempt.outcome)}>{outcomeWord(attempt.word)}</Tag>
              <span lang="en" className="min-w-0 break-words">{sentence(attempt.sentence)}</span>
            </p>
            <p className="mt-1 flex flex-wrap gap-x-4 text-sm text-soft">
              {attempt.completedAt ? <Moment at={attempt.completedAt} /> : attempt.scheduledFor && <span>{withParts(t("notBefore"), { time: <Moment at={attempt.scheduledFor} /> })}</span>}
              <span>{withParts(t("ofRun", { source: attempt.source ?? "–", number: attempt.number, depth: attempt.depth ?? "–" }), { run: mayWatch ? <Link to="/control/executions/$id" params={{ id: String(attempt.execution) }}>{t("inRun", { id: String(attempt.execution) })}</Link> : t("inRun", { id: String(attempt.execution) }) })}</span>
              {attempt.status && <span>{t("status", { status: String(attempt.status) })}</span>}
              {attempt.wireBytes !== null && <span>{bytes(attempt.wireBytes)}</span>}
              {attempt.foundOn && <span className="break-all">{t("foundOn", { url: attempt.foundOn })}</span>}
              {attempt.redirectedTo && <span className="break-all">{t("ledTo", { url: attempt.redirectedTo })}</span>}
              {attempt.record?.warcFile && <span className="font-mono break-all">{t("recordAt", { file: attempt.record.warcFile, offset: String(attempt.record.offset) })}</span>}
            </p>
            {attempt.message && <p className="mt-1 font-mono text-sm break-all">{attempt.message}</p>}
          </li>
        ))}
      </ul>
      {list.hasNextPage && <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>{t("earlier")}</Button>}
    </>
  );
}

/** Captures of the page, and who may see them. */
export function Captures({ found }: { found: Explanation }) {
  const { snapshots, visibility } = found;
  return (
    <>
      <p className="break-words">{capturesSaid(snapshots)}</p>
      {snapshots.count > 0 && <p className="break-words text-soft">{seenSaid(visibility)}</p>}
      {snapshots.otherSpellings > 0 && <p className="text-soft">{t("spellings", { count: snapshots.otherSpellings })}</p>}
      {visibility.withdrawals.map((one) => <p key={one.id} className="mt-1 break-words text-bad">{one.snapshot ? t("takenCapture", { id: String(one.snapshot), name: one.actor, reason: one.reason }) : t("takenPage", { name: one.actor, reason: one.reason })}</p>)}
      <ul className="mt-2 divide-y divide-line">
        {snapshots.items.map((one) => (
          <li key={one.id} className="flex flex-wrap items-baseline gap-x-4 gap-y-1 py-1.5 text-sm">
            <a href={one.replayPath}><Moment at={one.capturedAt} /></a>
            <span>{one.status ?? t("noStatus")}</span>
            <span className="text-soft">{one.mediaType}{one.recordType === "revisit" && t("asBefore")}{one.noise && `, ${plain(one.noise)}`}</span>
            {one.withdrawn && <Tag tone="bad">{t("takenDown")}</Tag>}
            <span className="text-soft">{one.source}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
