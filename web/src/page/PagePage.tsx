import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { pageRoute } from "@/app/publicRoutes";
import { useMay } from "@/app/useSession";
import { buttonClass } from "@/design/Button";
import { Card } from "@/design/Card";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { ONLY, readAskedPage, type AskedPage } from "./asked";
import { countedDays, daysOf, digits, kept, type StatusClass } from "./calendar";
import { CaptureList } from "./CaptureList";
import { Dot } from "./Dot";
import { Months } from "./Months";
import { useHistory, type PageHistory } from "./useHistory";
import { YearStrip } from "./YearStrip";

/** A page through time: its years, the days of one, and what changed on them. */
export function PagePage() {
  const { t } = useWords();
  const asked = readAskedPage({ ...pageRoute.useSearch() });
  const { data, error, refetch, isFetching } = useHistory(asked.url, asked.year);
  useEffect(() => { document.title = `${asked.url ? `${asked.url} · ` : ""}${t("page.title")} · Holdfast`; }, [asked.url, t]);
  const mayExplain = useMay("explain");
  const isUnknown = error instanceof ApiProblem && error.status === 404;
  return (
    <>
      <p className="text-sm font-semibold text-soft">{t("page.title")}</p>
      <h1 className="mb-3 text-2xl break-all">{data && !error ? data.url : (asked.url ?? t("page.title"))}</h1>
      <AddressForm asked={asked} />
      <div className="mt-6 min-h-96" aria-busy={isFetching}>
        {asked.url === undefined && <Notice title={t("page.which")}>{t("page.whichHow")}</Notice>}
        {isUnknown && <Notice title={t("page.unknown")} actions={<><Link to="/search" search={asked.url ? { q: asked.url } : {}} className={buttonClass("main")}>{t("page.searchIt")}</Link>{mayExplain && asked.url !== undefined && <Link to="/control/explain" search={{ url: asked.url }} className={buttonClass()}>{t("page.explain")}</Link>}</>}>{t("page.unknownHow")}</Notice>}
        {error && !isUnknown ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
        {asked.url !== undefined && !data && !error && <p role="status" className="text-soft">{t("app.loading")}…</p>}
        {data && !error && <Through found={data} asked={{ ...asked, year: data.year }} />}
      </div>
    </>
  );
}

function AddressForm({ asked }: { asked: AskedPage }) {
  const { t } = useWords();
  const navigate = useNavigate();
  return (
    <form key={asked.url} role="search" className="flex gap-2" onSubmit={(event) => {
      event.preventDefault();
      const url = new FormData(event.currentTarget).get("url");
      void navigate({ to: "/page", search: readAskedPage({ url }) });
    }}>
      <input type="text" inputMode="url" name="url" defaultValue={asked.url ?? ""} aria-label={t("page.address")} placeholder="https://" autoComplete="off" spellCheck={false} maxLength={8192} className="min-h-10 min-w-0 grow rounded-part border border-edge bg-sheet px-3" />
      <button type="submit" className={buttonClass("plain")}>{t("page.show")}</button>
    </form>
  );
}

function Through({ found, asked }: { found: PageHistory; asked: AskedPage }) {
  const { t, number, date } = useWords();
  const navigate = useNavigate();
  const mayExplain = useMay("explain");
  const go = (change: Partial<AskedPage>) => void navigate({ to: "/page", search: readAskedPage({ ...asked, ...change }), replace: true, resetScroll: false });
  const captures = kept(found.items, asked.only);
  const days = asked.only ? daysOf(captures) : countedDays(found.days);
  const total = found.years.reduce((sum, one) => sum + one.captures, 0);
  const newest = found.items.at(-1);
  const ofDay = asked.day ? captures.filter((one) => one.captureTimestamp.startsWith(asked.day ?? "")) : [];
  return (
    <div className="space-y-6">
      <div className="flex flex-wrap items-center gap-x-6 gap-y-2">
        <p className="mr-auto">{t(found.isCut ? "page.moreThan" : "search.capturesOf", { count: total })}</p>
        {newest && <Link to="/view/$timestamp" params={{ timestamp: digits(newest.captureTimestamp) }} search={{ url: newest.url }} className={buttonClass("main")}>{t("page.openNewest", { year: String(found.year) })}</Link>}
        <Link to="/search" search={{ q: found.url, view: "snapshots" }}>{t("page.inSearch")}</Link>
        {mayExplain && <Link to="/control/explain" search={{ url: found.url }}>{t("page.explain")}</Link>}
      </div>
      <Card><YearStrip years={found.years} year={found.year} asked={asked} /></Card>
      <Card title={<span className="tabular-nums">{found.year}</span>} actions={<Views asked={asked} onChange={go} />}>
        {asked.view === "list" ? <CaptureList captures={captures} caption={`${t("page.title")} ${found.year}`} /> : (
          <>
            {days.size === 0 && <div className="mb-4"><Notice title={t("page.noneLeft")}>{t("page.noneLeftHow")}</Notice></div>}
            <Months year={found.year} days={days} asked={asked} url={found.url} />
            <Legend />
            {ofDay.length > 0 && <section id="day" className="mt-6 scroll-mt-4 border-t border-line pt-4"><h3 className="mb-2 text-lg">{date(asked.day ?? "", { dateStyle: "full" })}</h3><CaptureList captures={ofDay} caption={date(asked.day ?? "", { dateStyle: "full" })} /></section>}
          </>
        )}
        {found.next && <p className="mt-4 text-sm text-soft">{t("page.cut", { shown: number(found.items.length) })}</p>}
      </Card>
    </div>
  );
}

function Views({ asked, onChange }: { asked: AskedPage; onChange: (change: Partial<AskedPage>) => void }) {
  const { t } = useWords();
  const part = "min-h-9 border border-edge px-3 py-1 text-sm first:rounded-l-part last:rounded-r-part aria-pressed:bg-accent aria-pressed:text-on-accent";
  return (
    <>
      <div role="group" aria-label={t("page.only")} className="flex">
        {[undefined, ...ONLY].map((one) => <button key={one ?? "all"} type="button" aria-pressed={asked.only === one} onClick={() => onChange({ only: one, day: undefined })} className={part}>{t(one ? `page.only.${one}` : "page.only.all")}</button>)}
      </div>
      <div role="group" aria-label={t("page.shownAs")} className="flex">
        {(["calendar", "list"] as const).map((one) => <button key={one} type="button" aria-pressed={(asked.view ?? "calendar") === one} onClick={() => onChange({ view: one === "list" ? one : undefined })} className={part}>{t(`page.as.${one}`)}</button>)}
      </div>
    </>
  );
}

const CLASSES: StatusClass[] = ["2xx", "3xx", "4xx", "5xx"];

function Legend() {
  const { t } = useWords();
  return (
    <ul aria-label={t("page.legend")} className="mt-6 flex flex-wrap gap-x-5 gap-y-1 text-sm text-soft">
      {CLASSES.map((one) => <li key={one} className="flex items-center gap-2"><Dot status={one} />{t(`status.${one}`)}</li>)}
      <li className="flex items-center gap-2"><Dot status="2xx" isChanged />{t("page.changed")}</li>
      <li className="flex items-center gap-2"><Dot status="2xx" captures={8} />{t("page.several")}</li>
    </ul>
  );
}
