import { useState } from "react";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { comparable, markOf } from "@/sources/crawls";
import { useCrawls } from "@/sources/useSource";
import { Differences, Kinds } from "./Differences";
import { joined, type AskedSite, type SiteDifference, type SiteKind } from "./site";
import { useSiteComparison } from "./useSite";

/** Rows that come at once: a longer table is slow to draw. */
const LISTED = 200;

export function CrawlPickers({ code, asked, onChange }: { code: string | undefined; asked: AskedSite; onChange: (change: Partial<AskedSite>) => void }) {
  const { t, date, moment } = useWords();
  const crawls = useCrawls(code);
  const options = comparable(crawls.data ?? [], asked.from, asked.to).map((one) => {
    const mark = markOf(one);
    return <option key={one.jobId} value={one.jobId}>{[one.lastCapturedAt ? moment(one.lastCapturedAt) : date(one.lastCapture), one.jobName, ...(mark ? [t(mark)] : [])].join(" · ")}</option>;
  });
  return (
    <>
      <SelectField label={t("site.from")} value={asked.from ?? ""} onChange={(event) => onChange({ from: Number(event.target.value) || undefined })}><option value="">–</option>{options}</SelectField>
      <SelectField label={t("site.to")} value={asked.to ?? ""} onChange={(event) => onChange({ to: Number(event.target.value) || undefined })}><option value="">–</option>{options}</SelectField>
    </>
  );
}

/** Two crawls held against each other, some thousand captures at a time. */
export function CrawlsCompared({ asked, onChange }: { asked: AskedSite; onChange: (change: Partial<AskedSite>) => void }) {
  const { t } = useWords();
  const found = useSiteComparison(asked.from, asked.to);
  if (asked.from === undefined || asked.to === undefined) return <Notice title={t("site.title")}>{t("site.pick")}</Notice>;
  if (asked.from === asked.to) return <Notice title={t("site.same")}>{t("site.pick")}</Notice>;
  const whole = found.data?.pages.reduce(joined);
  const rows = whole?.differences.filter((one) => !asked.kind || one.type === asked.kind);
  return (
    <>
      {found.error ? <Problem problem={found.error} onAgain={() => void found.refetch()} /> : null}
      {found.isLoading && <p role="status" className="text-soft">{t("app.loading")}…</p>}
      {whole && rows && (
        <>
          <Kinds counts={whole.counts} chosen={asked.kind} onChoose={(kind) => onChange({ kind })} />
          {found.hasNextPage && (
            <div className="mb-4 flex flex-wrap items-center gap-3">
              <p role="status" className="text-sm text-soft">{t("site.soFar", { count: Object.values(whole.counts).reduce((sum, one) => sum + one, 0) })}</p>
              <Button disabled={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>{t("site.more")}</Button>
            </div>
          )}
          <Listing key={asked.kind ?? ""} rows={rows} kind={asked.kind} />
        </>
      )}
    </>
  );
}

function Listing({ rows, kind }: { rows: SiteDifference[]; kind: SiteKind | undefined }) {
  const { t } = useWords();
  const [shown, setShown] = useState(LISTED);
  return (
    <>
      <Differences rows={rows.slice(0, shown)} kind={kind} />
      {rows.length > shown && <div className="mt-4 flex flex-wrap items-center gap-3"><Button onClick={() => setShown(shown + LISTED)}>{t("editions.more")}</Button><p className="text-sm text-soft">{t("site.shown", { shown, count: rows.length })}</p></div>}
    </>
  );
}
