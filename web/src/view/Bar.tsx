import { Link, useNavigate } from "@tanstack/react-router";
import { CalendarDays, ChevronLeft, ChevronRight, ChevronsLeft, ChevronsRight, Diff, Download, Flag, Globe, Quote } from "lucide-react";
import { useState, type KeyboardEvent } from "react";
import { ChangeTag } from "@/changes/ChangeTag";
import { Tag } from "@/design/Tag";
import { useWords } from "@/language/LanguageContext";
import { digits } from "@/page/calendar";
import { MODES, readAskedView, type Mode } from "./asked";
import { CiteDialog } from "./CiteDialog";
import { Coherence } from "./Coherence";
import { DownloadDialog } from "./DownloadDialog";
import { ReportDialog } from "./ReportDialog";
import type { CaptureView, Neighbour } from "./useCapture";

const small = "inline-flex min-h-8 items-center justify-center gap-1.5 rounded-part border border-edge bg-sheet px-2 text-ink no-underline hover:bg-sunk";

/** What stands above an archived page: its address and moment, its neighbours, where it comes from, what can be done with it. */
export function Bar({ view, mode }: { view: CaptureView; mode: Mode }) {
  const { t, moment, localMoment, localTime } = useWords();
  const local = localTime(view.captureTimestamp);
  // On a phone and in a window that is not high the page itself comes first: the rest of the bar is one touch away.
  const [isOpen, open] = useState(mode !== "page" && mode !== "renderer");
  return (
    <div role="region" aria-label={t("view.about")} className="shrink-0 border-b border-line bg-sheet px-3 py-1.5 text-sm sm:px-4">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5 short:sm:flex-nowrap">
        <Address view={view} />
        <time dateTime={view.captureTimestamp} title={localMoment(view.captureTimestamp)} className="font-semibold tabular-nums short:shrink-0">{moment(view.captureTimestamp)}</time>
        {local && <span className="hidden text-soft tabular-nums xl:inline">{local}</span>}
        {view.statusCode !== null && view.statusCode !== 200 && <Tag tone={view.statusCode >= 400 ? "bad" : "warn"}>{view.statusCode}</Tag>}
        <ChangeTag change={view.change} />
        <Steps view={view} mode={mode} />
        <button type="button" aria-expanded={isOpen} aria-controls="view-more" onClick={() => open(!isOpen)} className={`${small} sm:hidden short:inline-flex`}>{t("view.more")}</button>
      </div>
      <div id="view-more" className={`${isOpen ? "flex" : "hidden not-short:sm:flex"} mt-1.5 flex-wrap items-center gap-x-3 gap-y-1.5`}>
        <div role="group" aria-label={t("view.modes")} className="flex flex-wrap">
          {MODES.filter((one) => one !== "renderer" || view.rendererUrl !== null).map((one) => (
            <Link key={one} to="/view/$timestamp" params={{ timestamp: digits(view.captureTimestamp) }} search={readAskedView({ url: view.url, mode: one })} replace activeOptions={{ exact: true }} aria-current={mode === one ? "true" : undefined} className="-ml-px inline-flex min-h-8 items-center border border-edge px-2.5 text-ink no-underline first:ml-0 first:rounded-l-part last:rounded-r-part hover:bg-sunk aria-[current]:bg-accent aria-[current]:text-on-accent">{t(one === "page" && view.rendererUrl !== null ? "view.mode.own" : `view.mode.${one}`)}</Link>
          ))}
        </div>
        <Coherence view={view} />
        <span className="text-soft">{t("view.from")} <Link to="/sources/$code" params={{ code: view.sourceCode }}>{view.sourceName}</Link></span>
        <Doing view={view} />
      </div>
    </div>
  );
}

function Address({ view }: { view: CaptureView }) {
  const { t } = useWords();
  const navigate = useNavigate();
  return (
    <form className="min-w-40 grow basis-64 short:min-w-24 short:basis-24" onSubmit={(event) => {
      event.preventDefault();
      const url = readAskedView({ url: new FormData(event.currentTarget).get("url") }).url;
      if (url) void navigate({ to: "/view/$timestamp", params: { timestamp: digits(view.captureTimestamp) }, search: { url } });
    }}>
      <input name="url" defaultValue={view.url} aria-label={t("page.address")} autoComplete="off" spellCheck={false} maxLength={8192} className="min-h-8 w-full rounded-part border border-edge bg-sunk px-2 font-mono text-xs" />
    </form>
  );
}

/** Earlier and later captures and changes. The arrow keys go there while the focus is on one of them, with Shift from change to change; everywhere else they scroll. */
function Steps({ view, mode }: { view: CaptureView; mode: Mode }) {
  const { t, moment } = useWords();
  const navigate = useNavigate();
  function pressed(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to = event.key === "ArrowLeft" ? (event.shiftKey ? view.previousChange : view.previous) : event.key === "ArrowRight" ? (event.shiftKey ? view.nextChange : view.next) : null;
    if (!to) return;
    event.preventDefault();
    void navigate({ to: "/view/$timestamp", params: { timestamp: digits(to.captureTimestamp) }, search: readAskedView({ url: to.url, mode }) });
  }
  const step = (to: Neighbour | null, word: "view.previousChange" | "view.previous" | "view.next" | "view.nextChange", Icon: typeof ChevronLeft) => {
    const name = to ? `${t(word)}: ${moment(to.captureTimestamp)}` : t(word);
    const look = `${small} px-1.5`;
    if (!to) return <span aria-hidden className={`${look} opacity-40`}><Icon className="size-4" /></span>;
    return <Link to="/view/$timestamp" params={{ timestamp: digits(to.captureTimestamp) }} search={readAskedView({ url: to.url, mode })} title={name} aria-label={name} className={look}><Icon aria-hidden className="size-4" /></Link>;
  };
  return (
    <nav aria-label={t("view.through")} onKeyDown={pressed} className="flex shrink-0 gap-1">
      {step(view.previousChange, "view.previousChange", ChevronsLeft)}
      {step(view.previous, "view.previous", ChevronLeft)}
      <Link to="/page" search={{ url: view.url, year: new Date(view.captureTimestamp).getUTCFullYear() }} title={t("page.title")} className={small}><CalendarDays aria-hidden className="size-4" /><span className="short:sr-only">{t("view.calendar")}</span></Link>
      {step(view.next, "view.next", ChevronRight)}
      {step(view.nextChange, "view.nextChange", ChevronsRight)}
    </nav>
  );
}

function Doing({ view }: { view: CaptureView }) {
  const { t } = useWords();
  const [open, setOpen] = useState<"cite" | "download" | "report" | null>(null);
  const close = () => setOpen(null);
  return (
    <div className="flex flex-wrap gap-1 sm:ml-auto">
      {view.previous && <Link to="/compare" search={{ from: view.previous.snapshotId, to: view.snapshotId }} className={small}><Diff aria-hidden className="size-4" />{t("view.compare")}</Link>}
      {view.canCompareLive && view.mimeType?.includes("html") && <Link to="/compare" search={{ to: view.snapshotId, live: true }} className={small}><Globe aria-hidden className="size-4" />{t("view.compareLive")}</Link>}
      <button type="button" className={small} onClick={() => setOpen("cite")}><Quote aria-hidden className="size-4" />{t("view.cite")}</button>
      <button type="button" className={small} onClick={() => setOpen("download")}><Download aria-hidden className="size-4" />{t("view.download")}</button>
      <button type="button" className={small} onClick={() => setOpen("report")}><Flag aria-hidden className="size-4" />{t("view.report")}</button>
      {open === "cite" && <CiteDialog view={view} onClose={close} />}
      {open === "download" && <DownloadDialog view={view} onClose={close} />}
      {open === "report" && <ReportDialog view={view} onClose={close} />}
    </div>
  );
}
