import { Link, useNavigate } from "@tanstack/react-router";
import { X } from "lucide-react";
import { useEffect, useState } from "react";
import { useAwaySince } from "@/app/ConnectionBar";
import { Problem } from "@/app/Problem";
import { searchRoute } from "@/app/publicRoutes";
import { useMay } from "@/app/useSession";
import { Button, buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { addressIn, readAsked, changed, FILTERS, type Asked } from "./asked";
import { Export } from "./Export";
import { Facets, hasFacets, shownValue } from "./Facets";
import { Result } from "./Result";
import { SearchBox } from "./SearchBox";
import { barsOf } from "./spans";
import { TimeBars } from "./TimeBars";
import { useKeys } from "./useKeys";
import { isPending, PAGE_SIZE, useSearch, type SearchResults } from "./useSearch";

/** Search: everything that is asked stands in the address bar. */
export function SearchPage() {
  const { t } = useWords();
  const asked = readAsked({ ...searchRoute.useSearch() });
  const navigate = useNavigate();
  const { data: found, error, refetch, isFetching, isPlaceholderData } = useSearch(asked);
  // While the server is away, the results of the question before would stand below this one for long.
  const data = useAwaySince() !== null && isPlaceholderData ? undefined : found;
  const mayWatch = useMay("watch");
  const [isHelping, help] = useState(false);
  const focusOn = useKeys();
  const go = (change: Partial<Asked>) => void navigate({ to: "/search", search: changed(asked, change) });
  useEffect(() => { document.title = `${asked.q ? `${asked.q} · ` : ""}${t("search.title")} · Holdfast`; }, [asked.q, t]);
  return (
    <>
      <h1 className="sr-only">{t("search.title")}</h1>
      <SearchBox key={asked.q} start={asked.q ?? ""} isFirst={!asked.q} onAsk={(q) => go({ q: q || undefined })} help={{ isOpen: isHelping, onToggle: help }} />
      {isPending(error) ? <div className="mt-6 min-h-96"><Notice title={t("search.pending")} actions={mayWatch && <Link to={"/control/index" as "/control"} className={buttonClass()}>{t("search.pendingWatch")}</Link>}>{t("search.pendingHow")}</Notice></div> : null}
      {error && !isPending(error) ? <div className="mt-6"><Problem problem={error} onAgain={() => void refetch()} /></div> : null}
      {!data && !error && <p role="status" className="mt-6 min-h-96 text-soft">{t("app.loading")}…</p>}
      {data && !error && (
        <div aria-busy={isFetching} className={`mt-5 grid gap-6 ${hasFacets(data, asked) ? "lg:grid-cols-[15rem_1fr]" : ""}`}>
          {hasFacets(data, asked) && (
            <aside aria-label={t("search.filters")}>
              {/* On a phone the results come first: what narrows them down is one touch away. */}
              <details className="rounded-card border border-line bg-sheet p-3 lg:hidden"><summary className="font-semibold">{t("search.showFilters")}</summary><div className="mt-3"><Facets found={data} asked={asked} onChange={go} /></div></details>
              <div className="hidden lg:block"><Facets found={data} asked={asked} onChange={go} /></div>
            </aside>
          )}
          <div className="min-w-0">
            <Head found={data} asked={asked} onChange={go} />
            {data.results.length === 0 && data.total > 0 && data.page > 1
              ? <div className="mt-4"><Notice title={t("search.pastEnd")} actions={<Button onClick={() => go({})}>{t("search.toStart")}</Button>} /></div>
              : data.results.length === 0
              ? <div className="mt-4"><Notice title={t("search.none")}>{t("search.noneHow")}</Notice></div>
              : data.results.map((result, at) => <Result key={result.id} result={result} asked={asked} ref={focusOn(at)} />)}
            {data.results.length > 0 && <p className="mt-3 hidden text-sm text-soft sm:block">{t("search.keys")}</p>}
            <Pages found={data} onPage={(page) => { go({ page }); scrollTo({ top: 0 }); }} />
          </div>
        </div>
      )}
    </>
  );
}

function Head({ found, asked, onChange }: { found: SearchResults; asked: Asked; onChange: (change: Partial<Asked>) => void }) {
  const { t } = useWords();
  const bars = barsOf(found.histogram.buckets, found.histogram.unit);
  const view = asked.view ?? "pages";
  return (
    <div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <p role="status" className="mr-auto">{t(found.totalIsExact ? "search.results" : "search.atLeast", { count: found.total })} <span className="text-sm text-soft">{t("search.took", { ms: Math.round(found.tookMs) })}</span></p>
        <div className="flex" role="group" aria-label={t("page.shownAs")}>
          {(["pages", "snapshots"] as const).map((one) => (
            <button key={one} type="button" aria-pressed={view === one} onClick={() => onChange({ view: one === "pages" ? undefined : one })} className="min-h-9 border border-edge px-3 py-1 text-sm first:rounded-l-part last:rounded-r-part aria-pressed:bg-accent aria-pressed:text-on-accent">
              {t(one === "pages" ? "search.pages" : "search.captures")}
            </button>
          ))}
        </div>
        <label className="flex items-center gap-2 text-sm">{t("search.sort")}
          <select value={asked.sort ?? (asked.q ? "relevance" : "newest")} onChange={(event) => onChange({ sort: event.target.value as "newest" })} className="min-h-9 rounded-part border border-edge bg-sheet px-2">
            <option value="relevance">{t("search.sort.relevance")}</option>
            <option value="newest">{t("search.sort.newest")}</option>
          </select>
        </label>
        <Export asked={asked} />
      </div>
      {found.mode === "url" && asked.q && <p className="mt-3"><Link to="/page" search={{ url: addressIn(asked.q) }}>{t("page.title")}: {addressIn(asked.q)}</Link></p>}
      <Chosen found={found} asked={asked} onChange={onChange} />
      {found.didYouMean && <p className="mt-3 rounded-part bg-warn-wash px-3 py-2 text-warn">{t("search.didYouMean", { query: found.didYouMean })}</p>}
      {found.mode === "relevance_some_words" && <p className="mt-3 text-soft">{t("search.someWords")}</p>}
      {bars.length > 1 && <div className="mt-3"><TimeBars bars={bars} isExact={found.totalIsExact} label={t("search.overTime")} onSpan={(from, to) => onChange({ from, to })} /></div>}
    </div>
  );
}

function Chosen({ found, asked, onChange }: { found: SearchResults; asked: Asked; onChange: (change: Partial<Asked>) => void }) {
  const { t, date, language } = useWords();
  const chosen = FILTERS.flatMap((filter) => asked[filter] ? [{ filter, named: `${t(`facet.${filter}`)}: ${shownValue(found, filter, asked[filter], language)}` }] : []);
  const isSimilar = asked.similarTo !== undefined;
  const hasSpan = Boolean(asked.from || asked.to);
  if (chosen.length === 0 && !hasSpan && !isSimilar) return null;
  const chip = buttonClass("plain", "min-h-8 py-0.5 text-sm font-normal");
  return (
    <div className="mt-3 flex flex-wrap gap-2">
      {chosen.map(({ filter, named }) => (
        <button key={filter} type="button" className={chip} aria-label={t("search.remove", { name: named })} onClick={() => onChange({ [filter]: undefined })}>
          {named} <X aria-hidden className="size-4" />
        </button>
      ))}
      {isSimilar && <button type="button" className={chip} onClick={() => onChange({ similarTo: undefined })}>{t("search.similarTo")} <X aria-hidden className="size-4" /></button>}
      {hasSpan && (
        <button type="button" className={chip} onClick={() => onChange({ from: undefined, to: undefined })}>
          {asked.from ? date(asked.from) : "…"} – {asked.to ? date(asked.to) : "…"} <X aria-hidden className="size-4" />
        </button>
      )}
      <Button kind="bare" className="min-h-8 py-0.5 text-sm" onClick={() => onChange({ source: undefined, language: undefined, type: undefined, status: undefined, host: undefined, from: undefined, to: undefined, similarTo: undefined })}>{t("search.clear")}</Button>
    </div>
  );
}

function Pages({ found, onPage }: { found: SearchResults; onPage: (page: number) => void }) {
  const { t } = useWords();
  const pages = Math.ceil(found.total / PAGE_SIZE);
  if (pages < 2) return null;
  return (
    <nav aria-label={t("search.page", { page: found.page, pages })} className="mt-6 flex items-center justify-center gap-4">
      <Button disabled={found.page <= 1} onClick={() => onPage(found.page - 1)}>{t("search.previous")}</Button>
      <span>{t("search.page", { page: found.page, pages })}</span>
      <Button disabled={found.page >= pages} onClick={() => onPage(found.page + 1)}>{t("search.next")}</Button>
    </nav>
  );
}
