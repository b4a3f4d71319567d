import { Link } from "@tanstack/react-router";
import { Moment } from "@/control/live/Moment";
import { bytes, counted } from "@/control/charts/format";
import { outcomeTone } from "@/control/executions/outcomes";
import { plain, sentence } from "@/control/page/words";
import { useMay } from "@/app/useSession";
import { Button } from "@/design/Button";
import { Tag } from "@/design/Tag";
import type { Explanation, useExplanation } from "./useExplanation";

/** Every attempt on the page, newest first. */
export function Attempts({ list }: { list: ReturnType<typeof useExplanation> }) {
  const mayWatch = useMay("watch");
  if (list.attempts.length === 0) return <p>No crawl has tried it.</p>;
  return (
    <>
      <ul className="divide-y divide-line">
        {list.attempts.map((attempt) => (
          <li key={attempt.id} className="py-2">
            <p className="flex flex-wrap items-baseline gap-x-3">
              <Tag tone={outcomeTone(attempt.outcome)}>{attempt.word}</Tag>
              <span className="min-w-0 break-words">{sentence(attempt.sentence)}</span>
            </p>
            <p className="mt-1 flex flex-wrap gap-x-4 text-sm text-soft">
              {attempt.completedAt ? <Moment at={attempt.completedAt} /> : attempt.scheduledFor && <span>not before <Moment at={attempt.scheduledFor} /></span>}
              <span>{mayWatch ? <Link to="/control/executions/$id" params={{ id: String(attempt.execution) }}>run {attempt.execution}</Link> : `run ${attempt.execution}`}{attempt.source && ` of ${attempt.source}`}, attempt {attempt.number}, depth {attempt.depth}</span>
              {attempt.status && <span>status {attempt.status}</span>}
              {attempt.wireBytes !== null && <span>{bytes(attempt.wireBytes)}</span>}
              {attempt.foundOn && <span className="break-all">found on {attempt.foundOn}</span>}
              {attempt.redirectedTo && <span className="break-all">led to {attempt.redirectedTo}</span>}
              {attempt.record?.warcFile && <span className="font-mono break-all">{attempt.record.warcFile} at {attempt.record.offset}</span>}
            </p>
            {attempt.message && <p className="mt-1 font-mono text-sm break-all">{attempt.message}</p>}
          </li>
        ))}
      </ul>
      {list.hasNextPage && <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>Earlier attempts</Button>}
    </>
  );
}

/** Captures of the page, and who may see them. */
export function Captures({ found }: { found: Explanation }) {
  const { snapshots, visibility } = found;
  return (
    <>
      <p className="break-words">{sentence(snapshots.sentence)}</p>
      {snapshots.count > 0 && <p className="break-words text-soft">{sentence(visibility.sentence)}</p>}
      {snapshots.otherSpellings > 0 && <p className="text-soft">{counted(snapshots.otherSpellings, "capture")} under another spelling (http, www).</p>}
      {visibility.withdrawals.map((one) => <p key={one.id} className="mt-1 break-words text-bad">{one.snapshot ? `Capture ${one.snapshot}` : "The page"} was withdrawn by {one.actor}: {one.reason}</p>)}
      <ul className="mt-2 divide-y divide-line">
        {snapshots.items.map((one) => (
          <li key={one.id} className="flex flex-wrap items-baseline gap-x-4 gap-y-1 py-1.5 text-sm">
            <a href={one.replayPath}><Moment at={one.capturedAt} /></a>
            <span>{one.status ?? "no status"}</span>
            <span className="text-soft">{one.mediaType}{one.recordType === "revisit" && ", as before"}{one.noise && `, ${plain(one.noise)}`}</span>
            {one.withdrawn && <Tag tone="bad">withdrawn</Tag>}
            <span className="text-soft">{one.source}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
