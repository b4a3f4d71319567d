import { Link, useNavigate } from "@tanstack/react-router";
import { Rss } from "lucide-react";
import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import { changesRoute } from "@/app/publicRoutes";
import { Button, buttonClass } from "@/design/Button";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag, type Tone } from "@/design/Tag";
import { useSources } from "@/api/useArchive";
import { useWords } from "@/language/LanguageContext";
import { byDay, readAskedChanges, type AskedChanges } from "./asked";
import { PAGE_SIZE, useChanges, type ChangeEvent } from "./useChanges";

const TONES: Record<string, Tone> = { new: "good", updated: "accent", gone: "bad" };
const KNOWN = ["new", "updated", "gone", "unchanged"] as const;

/** What happened to pages, newest first, under their days. */
export function ChangesPage() {
  const { t, date } = useWords();
  const asked = changesRoute.useSearch();
  const navigate = useNavigate();
  const { data, error, refetch, isFetching } = useChanges(asked);
  const sources = useSources();
  const go = (change: Partial<AskedChanges>) => void navigate({ to: "/changes", search: readAskedChanges({ ...asked, page: undefined, ...change }) });
  useEffect(() => { document.title = `${t("changes.title")} · Holdfast`; }, [t]);
  return (
    <>
      <h1 className="text-2xl">{t("changes.title")}</h1>
      <p className="mt-1 mb-5 text-soft">{t("changes.intro")}</p>
      <div className="mb-6 grid items-end gap-3 sm:grid-cols-[14rem_14rem_auto]">
        <SelectField label={t("changes.source")} value={asked.source ?? ""} onChange={(event) => go({ source: event.target.value || undefined })}>
          <option value="">{t("changes.source.all")}</option>
          {sources.data?.map((source) => <option key={source.sourceCode} value={source.sourceCode}>{source.sourceName}</option>)}
        </SelectField>
        <SelectField label={t("changes.noise")} value={asked.noise ?? "hide"} onChange={(event) => go({ noise: event.target.value === "show" ? "show" : undefined })}>
          <option value="hide">{t("changes.noise.hide")}</option>
          <option value="show">{t("changes.noise.show")}</option>
        </SelectField>
        <a href={`/api/changes/rss${asked.source ? `?source=${encodeURIComponent(asked.source)}` : ""}`} className={buttonClass("plain", "justify-self-start")}><Rss aria-hidden className="size-4" />{t("changes.rss")}</a>
      </div>
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {data?.results.length === 0 && <Notice title={t("changes.none")}>{t("changes.noneHow")}</Notice>}
      <div aria-busy={isFetching}>
        {byDay(data?.results ?? [], (one) => one.toCaptureTimestamp).map(([day, changes]) => (
          <section key={day} className="mb-6">
            <h2 className="sticky top-0 border-b border-line bg-paper py-2 text-lg">{date(day, { dateStyle: "full" })}</h2>
            <ul className="divide-y divide-line">{changes.map((change) => <Change key={`${change.toSnapshotId}-${change.changeId}`} change={change} />)}</ul>
          </section>
        ))}
      </div>
      {data && data.total > PAGE_SIZE && (
        <nav aria-label={t("changes.title")} className="flex justify-center gap-3">
          <Button disabled={data.page <= 1} onClick={() => go({ page: data.page - 1 })}>{t("changes.newer")}</Button>
          <Button disabled={data.page * PAGE_SIZE >= data.total} onClick={() => go({ page: data.page + 1 })}>{t("changes.more")}</Button>
        </nav>
      )}
    </>
  );
}

function Change({ change }: { change: ChangeEvent }) {
  const { t, date } = useWords();
  const kind = KNOWN.find((one) => one === change.changeType);
  return (
    <li className="grid gap-x-4 gap-y-1 py-3 sm:grid-cols-[6rem_1fr_auto]">
      <span><Tag tone={TONES[change.changeType] ?? "plain"}>{kind ? t(`change.${kind}`) : change.changeType}</Tag></span>
      <div className="min-w-0">
        <p className="break-words">{change.summary}</p>
        <p className="text-sm break-all text-soft">{change.normalizedUrlGroup}</p>
        <p className="flex flex-wrap gap-x-3 text-sm text-soft">
          <span>{change.sourceName}</span>
          <time dateTime={change.toCaptureTimestamp}>{date(change.toCaptureTimestamp, { dateStyle: undefined, timeStyle: "short" })} UTC</time>
          {change.addedLines !== null && change.removedLines !== null && <span className="tabular-nums">{t("changes.lines", { added: change.addedLines, removed: change.removedLines })}</span>}
        </p>
      </div>
      {change.diffAvailable && <Link to="/compare" search={{ to: change.toSnapshotId, ...(change.fromSnapshotId ? { from: change.fromSnapshotId } : {}) }} className={buttonClass("plain", "self-start")}>{t("changes.compare")}</Link>}
    </li>
  );
}
