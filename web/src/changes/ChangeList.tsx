import { Link } from "@tanstack/react-router";
import { buttonClass } from "@/design/Button";
import { useWords } from "@/language/LanguageContext";
import { digits } from "@/page/calendar";
import { ChangeTag } from "./ChangeTag";
import { summaryOf } from "./summary";
import type { ChangeEvent } from "./useChanges";

/** What happened to pages, one below the other; short where it stands beside something else. */
export function ChangeList({ changes, isShort = false }: { changes: ChangeEvent[]; isShort?: boolean }) {
  return <ul className="divide-y divide-line">{changes.map((change) => <Change key={`${change.toSnapshotId}-${change.changeId}`} change={change} isShort={isShort} />)}</ul>;
}

function Change({ change, isShort }: { change: ChangeEvent; isShort: boolean }) {
  const { t, date, localMoment } = useWords();
  const url = change.normalizedUrlGroup;
  const at = change.toCaptureTimestamp;
  return (
    <li className={`grid gap-x-4 gap-y-1 py-3 ${isShort ? "" : "sm:grid-cols-[8rem_1fr_auto]"}`}>
      <span><ChangeTag change={change.changeType} /></span>
      <div className="min-w-0">
        {url && <p className="wrap-anywhere"><Link to="/view/$timestamp" params={{ timestamp: digits(at) }} search={{ url }} className="font-semibold">{change.title || url}</Link></p>}
        {url && change.title && <p className="text-sm break-all text-soft">{url}</p>}
        <p className="break-words text-soft">{summaryOf(change, t)}</p>
        <p className="flex flex-wrap gap-x-3 text-sm text-soft">
          {!isShort && <Link to="/sources/$code" params={{ code: change.sourceCode }} className="text-soft">{change.sourceName}</Link>}
          <time dateTime={at} title={localMoment(at)}>{isShort ? date(at) : `${date(at, { dateStyle: undefined, timeStyle: "short", hourCycle: "h23" })} UTC`}</time>
          {change.addedLines !== null && change.removedLines !== null && <span className="tabular-nums">{t("changes.lines", { added: change.addedLines, removed: change.removedLines })}</span>}
        </p>
      </div>
      <p className="flex flex-wrap gap-2 self-start">
        {change.diffAvailable && <Link to="/compare" search={{ to: change.toSnapshotId, ...(change.fromSnapshotId ? { from: change.fromSnapshotId } : {}) }} aria-label={`${t("changes.compare")}: ${url ?? ""}`} className={isShort ? "text-sm" : buttonClass("plain")}>{t("changes.compare")}</Link>}
      </p>
    </li>
  );
}
