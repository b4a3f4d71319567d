import { useNavigate } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { settingsRoute } from "@/app/careRoutes";
import { counted } from "@/control/charts/format";
import { SearchField } from "@/control/live/SearchField";
import { PageHead } from "@/control/page/PageHead";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { ORIGINS, readAskedSettings, type AskedSettings } from "./asked";
import { grouped } from "./grouped";
import { useSettings, type Setting } from "./useSettings";

const FROM: Record<Setting["origin"], string> = { default: "default", file: "settings file", dotenv: ".env file", environment: "environment", command: "command line" };

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
      <PageHead title="Settings">The values in force on this server, and where each was set. Change them there and restart; secrets are masked.</PageHead>
      <div role="search" aria-label="Find a setting" className="mb-4 grid items-end gap-3 sm:grid-cols-[1fr_14rem]">
        <SearchField label="Filter" asked={asked.search ?? ""} onAsk={(search) => go({ search })} placeholder="uploads" />
        <SelectField label="Set by" value={asked.origin ?? ""} onChange={(event) => go({ origin: (event.target.value || undefined) as AskedSettings["origin"] })}>
          <option value="">Anything</option>
          {ORIGINS.map((one) => <option key={one} value={one}>{FROM[one]}</option>)}
        </SelectField>
      </div>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      {!list.rows && !list.error && <p role="status" className="min-h-96 text-soft">Loading…</p>}
      <div className="space-y-4">
        {list.rows && !isNarrowed && <Card title="Changed">{changed.length > 0 ? <Table caption="Changed settings" rows={changed} /> : <p className="text-soft">Every setting has its default.</p>}</Card>}
        {groups.map(({ name, settings }) => <Group key={`${name} ${String(isNarrowed)}`} name={name} settings={settings} isOpen={isNarrowed} />)}
        {list.rows && groups.length === 0 && <Notice title="No matches">docs/settings.md lists all settings.</Notice>}
      </div>
    </>
  );
}

function Group({ name, settings, isOpen }: { name: string; settings: Setting[]; isOpen: boolean }) {
  const changed = settings.filter((one) => one.origin !== "default").length;
  return (
    <details open={isOpen} className="rounded-card border border-line bg-sheet shadow-card">
      <summary className="min-h-11 px-4 py-2.5 sm:px-5">
        <h2 className="inline text-lg">{name}</h2> <span className="text-soft">{counted(settings.length, "setting")}{changed > 0 ? `, ${changed} changed` : ""}</span>
      </summary>
      <div className="border-t border-line px-4 py-3 sm:px-5"><Table caption={name} rows={settings} /></div>
    </details>
  );
}

function Table({ caption, rows }: { caption: string; rows: Setting[] }) {
  return (
    <DataTable caption={caption} rows={rows} keyOf={(row) => row.name} empty={null} columns={[
      { head: "Setting", cell: (row) => <><code className="text-sm break-all">{row.name}</code><span className="block text-sm text-soft">{row.description}</span></> },
      { head: "Value", cell: (row) => <code className="text-sm break-all">{row.value === null || row.value === "" ? "–" : String(row.value)}</code> },
      { head: "Set by", cell: (row) => <Tag tone={row.origin === "default" ? "plain" : "accent"}>{FROM[row.origin]}</Tag> },
    ]} />
  );
}
