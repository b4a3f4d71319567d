import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { ApiProblem } from "@/api/problem";
import { CopyButton } from "@/app/CopyButton";
import { Problem } from "@/app/Problem";
import { compareRoute } from "@/app/publicRoutes";
import { Button } from "@/design/Button";
import { Notice } from "@/design/Notice";
import type { Word } from "@/language/en";
import { useWords } from "@/language/LanguageContext";
import { DiffLines } from "./DiffLines";
import { LiveSides, Pickers } from "./Pickers";
import { readAskedComparison, type AskedComparison } from "./asked";
import { marksOf, placesOf, type Hunk } from "./rows";
import { useComparison, useLiveComparison, type Comparison, type LiveComparison } from "./useComparison";

type Found = Comparison | LiveComparison;

/** Any two captures of a page, or a capture and the live page: what went and what came, word by word. */
export function ComparePage() {
  const { t } = useWords();
  const asked = readAskedComparison({ ...compareRoute.useSearch() });
  const stored = useComparison(asked);
  const live = useLiveComparison(asked);
  const { data, error, refetch } = asked.live ? live : stored;
  useEffect(() => { document.title = `${t("compare.title")} · Holdfast`; }, [t]);
  const heading = <h1 className="mb-4 text-2xl">{t("compare.title")}</h1>;
  if (asked.to === undefined) return <>{heading}<Notice title={t("compare.choose")}>{t("compare.pick")}</Notice></>;
  if (error instanceof ApiProblem && error.status === 404) return <>{heading}<Notice title={t("compare.missing")}>{t("compare.pick")}</Notice></>;
  if (error) return <>{heading}<Problem problem={error} onAgain={() => void refetch()} /></>;
  return (
    <>
      <h1 className="text-2xl">{t("compare.title")}</h1>
      {data ? <Compared found={data} /> : <p role="status" className="mt-6 min-h-96 text-soft">{t(asked.live ? "compare.fetching" : "app.loading")}…</p>}
    </>
  );
}

function Compared({ found }: { found: Found }) {
  const { t } = useWords();
  const asked = readAskedComparison({ ...compareRoute.useSearch() });
  const hunks = found.diff?.hunks ?? [];
  const places = hunks.map(placesOf);
  const count = places.flat().length;
  const [at, goTo] = useJumps(found, count);
  const isUnified = asked.view === "unified";
  const sections = found.diff?.sections ?? [];
  const [url, source] = "liveFetch" in found ? [found.archivedSnapshot.originalUrl, found.sourceCode] : [found.toSnapshot.originalUrl, found.event.sourceCode];
  return (
    <>
      <p className="mt-1 flex flex-wrap justify-between gap-x-4"><Link to="/page" search={{ url }} className="break-all">{url}</Link><Link to="/compare/site" search={{ source }}>{t("compare.site")}</Link></p>
      {"liveFetch" in found ? <LiveSides found={found} /> : <Pickers found={found} asked={asked} />}
      <Choices asked={asked} />
      {found.textModeFallback && <p className="mb-3 text-sm text-soft">{t("compare.fallback")}</p>}
      {sections.length > 0 && <p className="mb-3 break-words text-soft">{t("compare.sections", { names: sections.slice(0, 8).join(" · ") })}</p>}
      {hunks.length === 0 ? <Same found={found} /> : (
        <>
          <div className="sticky top-0 z-10 mb-3 flex flex-wrap items-center gap-2 border-b border-line bg-paper py-2">
            <span className="mr-auto text-sm text-soft"><span role="status">{t("compare.where", { at: at + 1, all: count })}</span> <span className="hidden sm:inline">· {t("compare.hint")}</span></span>
            <Button onClick={() => goTo(at - 1)} disabled={at <= 0}>{t("search.previous")}</Button>
            <Button onClick={() => goTo(at + 1)} disabled={at >= count - 1}>{t("search.next")}</Button>
            <CopyButton label={t("compare.share")} text={() => location.href} />
          </div>
          <div className="flex gap-3">
            <div className="min-w-0 grow space-y-3">{hunks.map((hunk, number) => <DiffLines key={number} hunk={hunk} first={places.slice(0, number).flat().length} at={at} isUnified={isUnified} isByLine={asked.by === "lines"} isBare={asked.only === "changes"} />)}</div>
            <ChangeMap hunks={hunks} at={at} onPick={goTo} />
          </div>
          {found.diffTruncated && <div className="mt-4"><Notice tone="warn" title={t("compare.truncated")} /></div>}
        </>
      )}
    </>
  );
}

function Same({ found }: { found: Found }) {
  const { t } = useWords();
  if (!("liveFetch" in found)) return <Notice title={found.fromSnapshot ? t("compare.none") : t("compare.first")} />;
  if (found.stats.changeType === "unchanged") return <Notice tone="good" title={t("compare.liveSame")} />;
  return <Notice tone="warn" title={t("compare.liveError", { status: found.liveFetch.statusCode })} />;
}

const part = "min-h-9 border border-edge px-3 py-1 text-sm first:rounded-l-part last:rounded-r-part aria-pressed:bg-accent aria-pressed:text-on-accent";

function Choices({ asked }: { asked: AskedComparison }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const go = (change: Partial<AskedComparison>) => void navigate({ to: "/compare", search: { ...asked, ...change }, replace: true, resetScroll: false });
  const pair = (name: Word, options: [Word, boolean, Partial<AskedComparison>][]) => (
    <div role="group" aria-label={t(name)} className="flex">
      {options.map(([word, isOn, change]) => <button key={word} type="button" aria-pressed={isOn} onClick={() => go(change)} className={part}>{t(word)}</button>)}
    </div>
  );
  return (
    <div className="mb-4 flex flex-wrap gap-3">
      {pair("compare.view", [["compare.sideBySide", asked.view !== "unified", { view: undefined }], ["compare.unified", asked.view === "unified", { view: "unified" }]])}
      {pair("compare.by", [["compare.words", asked.by !== "lines", { by: undefined }], ["compare.lines", asked.by === "lines", { by: "lines" }]])}
      {pair("compare.what", [["compare.main", asked.text !== "full", { text: undefined }], ["compare.all", asked.text === "full", { text: "full" }]])}
      {pair("compare.around", [["compare.withAround", asked.only !== "changes", { only: undefined }], ["compare.onlyChanges", asked.only === "changes", { only: "changes" }]])}
    </div>
  );
}

/** The place among the changes of a comparison, the first of another one; n and p, or j and k, go from one to the next. */
function useJumps(found: Found, count: number): [number, (to: number) => void] {
  const [at, setAt] = useState(0);
  const [before, remember] = useState(found);
  if (found !== before) {
    remember(found);
    setAt(0);
  }
  useEffect(() => {
    function pressed(event: KeyboardEvent) {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target instanceof HTMLElement && event.target.closest("input, textarea, select"))) return;
      if (count === 0) return;
      const step = event.key === "n" || event.key === "j" ? 1 : event.key === "p" || event.key === "k" ? -1 : 0;
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

/** Where the changes stand in the page: each as far down as its lines are, and as long. */
function ChangeMap({ hunks, at, onPick }: { hunks: Hunk[]; at: number; onPick: (to: number) => void }) {
  const { t } = useWords();
  const places = hunks.flatMap(placesOf);
  if (places.length < 2 || places.length > 200) return null;
  return (
    <nav aria-label={t("compare.map")} className="sticky top-16 hidden h-[70dvh] w-6 shrink-0 self-start rounded-part bg-sunk sm:block">
      {marksOf(places, hunks).map((mark, number) => (
        <button key={number} type="button" title={t("compare.where", { at: number + 1, all: places.length })} aria-label={t("compare.where", { at: number + 1, all: places.length })} aria-current={number === at} onClick={() => onPick(number)} style={{ top: `${mark.top}%`, height: `${mark.height}%` }} className="absolute inset-x-1 min-h-1.5 rounded-sm bg-edge hover:bg-accent aria-[current=true]:bg-accent" />
      ))}
    </nav>
  );
}
