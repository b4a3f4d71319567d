import { useNavigate } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { settingsRoute } from "@/app/careRoutes";
import { SearchField } from "@/control/live/SearchField";
import { PageHead } from "@/control/page/PageHead";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { ORIGINS, readAskedSettings, type AskedSettings } from "./asked";
import { descriptionOf, groupName, grouped } from "./grouped";
import { useSettings, type Setting } from "./useSettings";
import { t } from "@/language/control/settings";
import { t as common } from "@/language/control/common";

/** The settings in force, the changed ones first, and where each was set. They are changed there, and hold after a restart. */
export function SettingsPage() {
  const asked = readAskedSettings({ ...settingsRoute.useSearch() });
  const navigate = useNavigate();
  const list = useSettings();
  const go = (change: Partial<AskedSettings>) => void navigate({ to: "/control/settings", search: readAskedSettings({ ...asked, ...change }), replace: true });
  const rows = list.rows?.filter((one) => asked.origin === undefined || one.origin === asked.origin);
  const { changed, groups } = grouped(rows ?? [], asked.search ?? "");
  const isNarrowed = asked.search !== undefined || asked.origin !== undefined;
  return (
    <>
      <PageHead title={t("title")}>{t("intro")}</PageHead>
      <div role="search" aria-label={t("find")} className="mb-4 grid items-end gap-3 sm:grid-cols-[1fr_14rem]">
        <SearchField label={t("filter")} asked={asked.search ?? ""} onAsk={(search) => go({ search })} placeholder={t("example")} />
        <SelectField label={t("setBy")} value={asked.origin ?? ""} onChange={(event) => go({ origin: (event.target.value || undefined) as AskedSettings["origin"] })}>
          <option value="">{t("anything")}</option>
          {ORIGINS.map((one) => <option key={one} value={one}>{t(`from.${one}`)}</option>)}
        </SelectField>
      </div>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      {!list.rows && !list.error && <p role="status" className="min-h-96 text-soft">{common("loading")}</p>}
      <div className="space-y-4">
        {list.rows && !isNarrowed && <Card title={t("changed")}>{changed.length > 0 ? <Table caption={t("changedCaption")} rows={changed} /> : <p className="text-soft">{t("allDefault")}</p>}</Card>}
        {groups.map(({ name, settings }) => <Group key={`${name} ${String(isNarrowed)}`} name={name} settings={settings} isOpen={isNarrowed} />)}
        {list.rows && groups.length === 0 && <Notice title={common("noMatches")}>{t("listed")}</Notice>}
      </div>
    </>
  );
}

function Group({ name, settings, isOpen }: { name: string; settings: Setting[]; isOpen: boolean }) {
  const changed = settings.filter((one) => one.origin !== "default").length;
  return (
    <details open={isOpen} className="rounded-card border border-line bg-sheet shadow-card">
      <summary className="min-h-11 px-4 py-2.5 sm:px-5">
        <h2 className="inline text-lg">{groupName(name)}</h2> <span className="text-soft">{changed > 0 ? t("countChanged", { settings: t("count", { count: settings.length }), number: changed }) : t("count", { count: settings.length })}</span>
      </summary>
      <div className="border-t border-line px-4 py-3 sm:px-5"><Table caption={groupName(name)} rows={settings} /></div>
    </details>
  );
}

function Table({ caption, rows }: { caption: string; rows: Setting[] }) {
  return (
    <DataTable caption={caption} rows={rows} keyOf={(row) => row.name} empty={null} columns={[
      { head: t("setting"), cell: (row) => <><code className="text-sm break-all">{row.name}</code><Description setting={row} /></> },
      { head: t("value"), cell: (row) => <code className="text-sm break-all">{row.value === null || row.value === "" ? "–" : String(row.value)}</code> },
      { head: t("setBy"), cell: (row) => <Tag tone={row.origin === "default" ? "plain" : "accent"}>{t(`from.${row.origin}`)}</Tag> },
    ]} />
  );
}

function Description({ setting }: { setting: Setting }) {
  const { text, lang } = descriptionOf(setting);
  return <span lang={lang} className="block text-sm text-soft">{text}</span>;
}
