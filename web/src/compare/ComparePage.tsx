import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { Problem } from "@/app/Problem";
import { compareRoute } from "@/app/publicRoutes";
import { Button } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { DiffLines } from "./DiffLines";
import { useComparison, type Comparison } from "./useComparison";

/** Any two captures of a page: what went and what came, word by word. */
export function ComparePage() {
  const { t } = useWords();
  const asked = compareRoute.useSearch();
  const { data, error, refetch } = useComparison(asked);
  useEffect(() => { document.title = `${t("compare.title")} · Holdfast`; }, [t]);
  if (asked.to === undefined) return <Notice title={t("compare.title")}>{t("compare.pick")}</Notice>;
  if (error) return <Problem problem={error} onAgain={() => void refetch()} />;
  return (
    <>
      <h1 className="text-2xl">{t("compare.title")}</h1>
      {data ? <Compared found={data} /> : <p role="status" className="mt-6 min-h-96 text-soft">{t("app.loading")}…</p>}
    </>
  );
}

function Compared({ found }: { found: Comparison }) {
  const { t } = useWords();
  const asked = compareRoute.useSearch();
  const navigate = useNavigate();
  const hunks = found.diff?.hunks ?? [];
  const [at, goTo] = useJumps(hunks.length);
  const isUnified = asked.view === "unified";
  return (
    <>
      <p className="mt-1 break-all text-soft">{found.toSnapshot.originalUrl}</p>
      <div className="my-4 grid gap-3 sm:grid-cols-2">
        <Capture label={t("compare.from")} snapshot={found.fromSnapshot} />
        <Capture label={t("compare.to")} snapshot={found.toSnapshot} />
      </div>
      {hunks.length === 0 ? <Notice title={found.fromSnapshot ? t("compare.none") : t("compare.first")} /> : (
        <>
          <div className="sticky top-0 z-10 mb-3 flex flex-wrap items-center gap-2 border-b border-line bg-paper py-2">
            <span role="status" className="mr-auto text-sm text-soft">{t("compare.where", { at: at + 1, all: hunks.length })} · {t("compare.hint")}</span>
            <Button onClick={() => goTo(at - 1)} disabled={at <= 0}>{t("search.previous")}</Button>
            <Button onClick={() => goTo(at + 1)} disabled={at >= hunks.length - 1}>{t("search.next")}</Button>
            <Button onClick={() => void navigate({ to: "/compare", search: { ...asked, view: isUnified ? undefined : "unified" }, replace: true })}>{t(isUnified ? "compare.sideBySide" : "compare.unified")}</Button>
            <Share />
          </div>
          <div className="flex gap-3">
            <div className="min-w-0 grow space-y-3">{hunks.map((hunk, number) => <DiffLines key={number} id={`change-${number}`} hunk={hunk} isUnified={isUnified} />)}</div>
            <ChangeMap count={hunks.length} at={at} onPick={goTo} />
          </div>
          {found.diffTruncated && <div className="mt-4"><Notice tone="warn" title={t("compare.truncated")} /></div>}
        </>
      )}
    </>
  );
}

function Capture({ label, snapshot }: { label: string; snapshot: Comparison["fromSnapshot"] }) {
  const { date } = useWords();
  if (!snapshot) return <div className="rounded-card border border-dashed border-line p-3 text-soft">{label}: –</div>;
  return (
    <div className="rounded-card border border-line bg-sheet p-3">
      <p className="text-sm text-soft">{label}</p>
      <p className="font-semibold break-words">{snapshot.title}</p>
      <p><a href={`/api/snapshots/raw/${snapshot.snapshotId}`}><time dateTime={snapshot.captureTimestamp}>{date(snapshot.captureTimestamp, { dateStyle: "long", timeStyle: "short" })} UTC</time></a></p>
    </div>
  );
}

/** The place among the changes; n and p, or j and k, go from one to the next. */
function useJumps(count: number): [number, (to: number) => void] {
  const [at, setAt] = useState(0);
  useEffect(() => {
    function pressed(event: KeyboardEvent) {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target instanceof HTMLElement && event.target.closest("input, textarea, select"))) return;
      const step = "nj".includes(event.key) ? 1 : "pk".includes(event.key) ? -1 : 0;
      if (step !== 0) setAt((before) => show(Math.min(Math.max(before + step, 0), count - 1)));
    }
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [count]);
  return [at, (to) => setAt(show(Math.min(Math.max(to, 0), count - 1)))];
}

function show(at: number): number {
  document.getElementById(`change-${at}`)?.scrollIntoView({ block: "start" });
  return at;
}

function ChangeMap({ count, at, onPick }: { count: number; at: number; onPick: (to: number) => void }) {
  const { t } = useWords();
  if (count < 2 || count > 200) return null;
  return (
    <ol aria-label={t("compare.title")} className="sticky top-16 hidden h-[70dvh] w-4 flex-col gap-px self-start sm:flex">
      {Array.from({ length: count }, (_, number) => (
        <li key={number} className="min-h-1 flex-1">
          <button type="button" aria-label={t("compare.where", { at: number + 1, all: count })} aria-current={number === at} onClick={() => onPick(number)} className="h-full w-full rounded-sm bg-line hover:bg-accent aria-[current=true]:bg-accent" />
        </li>
      ))}
    </ol>
  );
}

function Share() {
  const { t } = useWords();
  const [isCopied, copied] = useState(false);
  return <Button onClick={() => { void navigator.clipboard.writeText(location.href).then(() => copied(true)); }}>{t(isCopied ? "compare.copied" : "compare.share")}</Button>;
}
