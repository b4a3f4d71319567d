import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { reportsRoute } from "@/app/careRoutes";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { ShowMore } from "@/control/page/ShowMore";
import { Button } from "@/design/Button";
import { SelectField, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag, type Tone } from "@/design/Tag";
import { ReportCard } from "./ReportCard";
import { CATEGORIES, readAskedReports, STATUSES, type AskedReports } from "./asked";
import { useReports, type Report } from "./useReports";
import { t } from "@/language/control/reports";
import { t as common } from "@/language/control/common";

export const TONES: Record<Report["status"], Tone> = { new: "accent", triaged: "warn", resolved: "good" };

/** What readers found wrong: a list, and beside it the report that is open. */
export function ReportsPage() {
  const asked = readAskedReports({ ...reportsRoute.useSearch() });
  const navigate = useNavigate();
  const list = useReports(asked);
  const [search, setSearch] = useState(asked.search ?? "");
  const go = (change: Partial<AskedReports>) => void navigate({ to: "/control/reports", search: readAskedReports({ ...asked, ...change }), replace: true, resetScroll: false });
  return (
    <>
      <PageHead title={t("title")}>{t("intro")}</PageHead>
      <form role="search" aria-label={t("findReport")} className="mb-4 grid items-end gap-3 sm:grid-cols-[1fr_10rem_14rem_auto]" onSubmit={(event) => { event.preventDefault(); go({ search }); }}>
        <TextField label={t("find")} value={search} maxLength={200} onChange={(event) => setSearch(event.target.value)} placeholder={t("findHow")} />
        <SelectField label={t("state")} value={asked.status ?? ""} onChange={(event) => go({ status: (event.target.value || undefined) as AskedReports["status"] })}>
          <option value="">{t("all")}</option>
          {STATUSES.map((one) => <option key={one} value={one}>{t(`status.${one}`)}</option>)}
        </SelectField>
        <SelectField label={t("about")} value={asked.category ?? ""} onChange={(event) => go({ category: (event.target.value || undefined) as AskedReports["category"] })}>
          <option value="">{t("everything")}</option>
          {CATEGORIES.map((one) => <option key={one} value={one}>{t(`category.${one}`)}</option>)}
        </SelectField>
        <Button type="submit">{t("find")}</Button>
      </form>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-[minmax(0,2fr)_minmax(0,3fr)]">
        <div className="min-h-48">
          {list.rows?.length === 0 && <Notice title={t("none")}>{asked.search || asked.status || asked.category ? common("noMatches") : t("noneHow")}</Notice>}
          {!list.rows && !list.error && <p role="status" className="text-soft">{common("loading")}</p>}
          <ul className="space-y-2">
            {list.rows?.map((report) => (
              <li key={report.reportId}>
                <Link to="/control/reports" search={{ ...asked, id: report.reportId }} resetScroll={false} activeOptions={{ exact: true }} aria-current={asked.id === report.reportId ? "true" : undefined} className="block rounded-card border border-line bg-sheet p-3 text-ink no-underline hover:border-edge aria-[current]:border-accent aria-[current]:bg-wash">
                  <span className="flex flex-wrap items-center gap-2"><Tag tone={TONES[report.status]}>{t(`status.${report.status}`)}</Tag><span className="font-semibold">{t.of("category", report.category)}</span><span className="ml-auto text-sm text-soft"><Moment at={report.createdAt} /></span></span>
                  <span className="mt-1 line-clamp-2 break-words">{report.description}</span>
                </Link>
              </li>
            ))}
          </ul>
          {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="report" />}
        </div>
        {asked.id !== undefined ? <div className="order-first lg:order-none"><ReportCard key={asked.id} id={asked.id} /></div> : list.rows?.length ? <p className="hidden rounded-card border border-dashed border-line p-6 text-center text-soft lg:block">{t("choose")}</p> : null}
      </div>
    </>
  );
}
