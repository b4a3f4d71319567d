import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect } from "react";
import { Problem } from "@/app/Problem";
import { viewRoute } from "@/app/publicRoutes";
import { buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { digits } from "@/page/calendar";
import { readAskedView, wholeDigits, type AskedView } from "./asked";
import { Bar } from "./Bar";
import { Frame, RendererFrame } from "./Frame";
import { Headers, Parts, Source, Text } from "./Modes";
import { useResolved, useView, type CaptureView } from "./useCapture";

/** An archived page in its frame, with a slim bar that says what it is and leads through time. */
export function ViewPage() {
  const { t, date } = useWords();
  const { timestamp } = viewRoute.useParams();
  const asked = readAskedView({ ...viewRoute.useSearch() });
  const resolved = useResolved(asked.url, wholeDigits(timestamp));
  const found = useView(resolved.data?.found ? resolved.data.snapshotId : null);
  const view = resolved.data?.found ? found.data : undefined;
  useEffect(() => {
    document.title = view ? `${view.title ?? view.url} (${date(view.captureTimestamp)}) · Holdfast` : "Holdfast";
  }, [view, date]);
  const problem = resolved.error ?? found.error;
  if (asked.url === undefined) return <Alone><Notice title={t("page.which")} actions={<Link to="/page" className={buttonClass("main")}>{t("page.title")}</Link>}>{t("page.whichHow")}</Notice></Alone>;
  if (problem) return <Alone><Problem problem={problem} onAgain={() => void (resolved.error ? resolved : found).refetch()} /></Alone>;
  if (resolved.data && !resolved.data.found) return <Alone><NotCaptured url={asked.url} /></Alone>;
  if (!view) return <Alone><p role="status" className="text-soft">{t("app.loading")}…</p></Alone>;
  return (
    <div className="flex min-h-0 grow flex-col">
      <h1 className="sr-only">{view.title ?? view.url}</h1>
      <Bar key={view.snapshotId} view={view} mode={asked.mode ?? "page"} />
      <Shown view={view} asked={asked} place={`${timestamp} ${asked.url}`} />
    </div>
  );
}

function Alone({ children }: { children: React.ReactNode }) {
  const { t } = useWords();
  return <div className="mx-auto w-full max-w-3xl overflow-y-auto px-4 py-8"><h1 className="mb-4 text-2xl">{t("view.about")}</h1>{children}</div>;
}

function NotCaptured({ url }: { url: string }) {
  const { t } = useWords();
  return (
    <Notice title={t("view.notHere")} actions={<><Link to="/search" search={{ q: url }} className={buttonClass("main")}>{t("page.searchIt")}</Link><button type="button" className={buttonClass()} onClick={() => history.back()}>{t("view.back")}</button></>}>
      <p className="break-all">{url}</p>
      <p>{t("view.notHereHow")}</p>
    </Notice>
  );
}

function Shown({ view, asked, place }: { view: CaptureView; asked: AskedView; place: string }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const mode = asked.mode ?? "page";
  const go = useCallback((url: string, at: string, isReplaced: boolean) => void navigate({ to: "/view/$timestamp", params: { timestamp: at }, search: { url }, replace: isReplaced }), [navigate]);
  if (mode === "renderer" && view.rendererUrl !== null) return <RendererFrame view={view} src={view.rendererUrl} />;
  if (mode === "renderer") return <div className="mx-auto w-full max-w-3xl px-4 py-8"><Notice title={t("view.noRenderer")}>{t("view.noRendererHow")}</Notice></div>;
  if (mode === "page") return <Frame view={view} place={place} onGo={go} />;
  return (
    <div role="region" aria-label={t(`view.mode.${mode}`)} tabIndex={0} className="grow overflow-auto bg-paper -outline-offset-4">
      <div className="mx-auto max-w-5xl px-4 py-5">
        {mode === "text" && <Text id={view.snapshotId} language={view.language} />}
        {mode === "source" && <Source id={view.snapshotId} rawUrl={view.rawUrl} />}
        {mode === "headers" && <Headers id={view.snapshotId} />}
        {mode === "parts" && <Parts id={view.snapshotId} at={digits(view.captureTimestamp)} />}
      </div>
    </div>
  );
}
