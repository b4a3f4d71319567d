import { useNavigate } from "@tanstack/react-router";
import { Rss } from "lucide-react";
import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import { changesRoute } from "@/app/publicRoutes";
import { useSources } from "@/api/useArchive";
import { Button, buttonClass } from "@/design/Button";
import { SelectField, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { byDay, feedOf, readAskedChanges, TYPES, type AskedChanges } from "./asked";
import { ChangeList } from "./ChangeList";
import { PAGE_SIZE, useChanges } from "./useChanges";

/** What happened to pages, newest first, under their days. */
export function ChangesPage() {
  const { t, date } = useWords();
  const asked = readAskedChanges({ ...changesRoute.useSearch() });
  const navigate = useNavigate();
  const { data, error, refetch, isFetching } = useChanges(asked);
  // A day that is typed figure by figure is one step of the history, not four.
  const go = (change: Partial<AskedChanges>) => void navigate({ to: "/changes", search: readAskedChanges({ ...asked, page: undefined, ...change }), replace: "from" in change || "to" in change });
  useEffect(() => { document.title = `${t("changes.title")} · Holdfast`; }, [t]);
  return (
    <>
      <div className="mb-5 flex flex-wrap items-end justify-between gap-3">
        <div><h1 className="text-2xl">{t("changes.title")}</h1><p className="mt-1 text-soft">{t("changes.intro")}</p></div>
        <a href={feedOf(asked)} className={buttonClass("plain")}><Rss aria-hidden className="size-4" />{t("changes.rss")}</a>
      </div>
      <Filters asked={asked} onChange={go} />
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {data?.results.length === 0 && !error && <Notice title={t("changes.none")}>{t("changes.noneHow")}</Notice>}
      <div aria-busy={isFetching} className="min-h-96">
        {byDay(data?.results ?? [], (one) => one.toCaptureTimestamp).map(([day, changes]) => (
          <section key={day} className="mb-6">
            <h2 className="sticky top-0 z-[1] border-b border-line bg-paper py-2 text-lg first-letter:uppercase">{date(day, { dateStyle: "full" })}</h2>
            <ChangeList changes={changes} />
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

function Filters({ asked, onChange }: { asked: AskedChanges; onChange: (change: Partial<AskedChanges>) => void }) {
  const { t } = useWords();
  const sources = useSources();
  return (
    <div className="mb-6 grid items-end gap-3 xs:grid-cols-2 md:grid-cols-3 lg:grid-cols-5">
      <SelectField label={t("changes.source")} value={asked.source ?? ""} onChange={(event) => onChange({ source: event.target.value || undefined })}>
        <option value="">{t("changes.source.all")}</option>
        {sources.data?.map((source) => <option key={source.sourceCode} value={source.sourceCode}>{source.sourceName}</option>)}
      </SelectField>
      <SelectField label={t("changes.type")} value={asked.type ?? ""} onChange={(event) => onChange({ type: TYPES.find((one) => one === event.target.value) })}>
        <option value="">{t("changes.type.all")}</option>
        {TYPES.map((one) => <option key={one} value={one}>{t(`change.${one}`)}</option>)}
      </SelectField>
      <SelectField label={t("changes.noise")} value={asked.noise ?? "hide"} onChange={(event) => onChange({ noise: event.target.value === "show" ? "show" : undefined })}>
        <option value="hide">{t("changes.noise.hide")}</option>
        <option value="show">{t("changes.noise.show")}</option>
      </SelectField>
      <TextField type="date" label={t("changes.from")} value={asked.from ?? ""} max={asked.to} onChange={(event) => onChange({ from: event.target.value || undefined })} />
      <TextField type="date" label={t("changes.to")} value={asked.to ?? ""} min={asked.from} onChange={(event) => onChange({ to: event.target.value || undefined })} />
    </div>
  );
}
