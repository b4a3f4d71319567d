import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { useSources } from "@/api/useArchive";
import { CopyButton } from "@/app/CopyButton";
import { siteRoute } from "@/app/publicRoutes";
import { SelectField } from "@/design/Field";
import { useWords } from "@/language/LanguageContext";
import { CrawlPickers, CrawlsCompared } from "./CrawlsCompared";
import { EditionPickers, EditionsCompared } from "./EditionsCompared";
import { readAskedSite, type AskedSite } from "./site";

const part = "min-h-9 border border-edge px-3 py-1 text-sm first:rounded-l-part last:rounded-r-part aria-pressed:bg-accent aria-pressed:text-on-accent";

/** The site as a whole between two crawls or two editions: new, gone, changed, moved. */
export function SitePage() {
  const { t } = useWords();
  const asked = readAskedSite({ ...siteRoute.useSearch() });
  const navigate = useNavigate();
  const sources = useSources();
  const go = (change: Partial<AskedSite>) => void navigate({ to: "/compare/site", search: readAskedSite({ ...asked, ...change }), replace: true, resetScroll: false });
  useEffect(() => { document.title = `${t("site.title")} · Holdfast`; }, [t]);
  const code = asked.source ?? sources.data?.[0]?.sourceCode;
  const isOfEditions = asked.of === "editions";
  const among = (of: AskedSite["of"]) => go({ of, from: undefined, to: undefined, kind: undefined, source: code });
  return (
    <>
      <h1 className="text-2xl">{t("site.title")}</h1>
      <p className="mt-1 mb-4 text-soft">{t("site.intro")}</p>
      <div className="mb-4 flex flex-wrap items-center justify-between gap-3">
        <div role="group" aria-label={t("site.of")} className="flex">
          <button type="button" aria-pressed={!isOfEditions} onClick={() => among(undefined)} className={part}>{t("site.crawls")}</button>
          <button type="button" aria-pressed={isOfEditions} onClick={() => among("editions")} className={part}>{t("site.editions")}</button>
        </div>
        {asked.from !== undefined && asked.to !== undefined && <CopyButton label={t("compare.share")} text={() => location.href} />}
      </div>
      <div className="grid gap-3 sm:grid-cols-3">
        <SelectField label={t("site.source")} value={code ?? ""} onChange={(event) => go({ source: event.target.value, from: undefined, to: undefined, kind: undefined })}>
          {code && !sources.data?.some((one) => one.sourceCode === code) && <option value={code}>{code}</option>}
          {sources.data?.map((one) => <option key={one.sourceCode} value={one.sourceCode}>{one.sourceName}</option>)}
        </SelectField>
        {isOfEditions ? <EditionPickers code={code} asked={asked} onChange={go} /> : <CrawlPickers code={code} asked={asked} onChange={go} />}
      </div>
      <div className="mt-6 min-h-96">
        {isOfEditions ? code && <EditionsCompared code={code} asked={asked} onChange={go} /> : <CrawlsCompared asked={asked} onChange={go} />}
      </div>
    </>
  );
}
