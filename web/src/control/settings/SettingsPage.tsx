import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { settingsRoute } from "@/app/careRoutes";
import { PageHead } from "@/control/page/PageHead";
import { ShowMore } from "@/control/page/ShowMore";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { ORIGINS, readAskedSettings, type AskedSettings } from "./asked";
import { useSettings, type Setting } from "./useSettings";

const FROM: Record<Setting["origin"], string> = { default: "default", file: "settings file", dotenv: ".env file", environment: "environment", command: "command line" };

/** The settings in force, and where each was set. They are changed there, and hold after a restart. */
export function SettingsPage() {
  const asked = readAskedSettings({ ...settingsRoute.useSearch() });
  const navigate = useNavigate();
  const list = useSettings(asked);
  const [search, setSearch] = useState(asked.search ?? "");
  const go = (change: Partial<AskedSettings>) => void navigate({ to: "/control/settings", search: readAskedSettings({ ...asked, ...change }), replace: true });
  return (
    <>
      <PageHead title="Settings">What is in force in this server, and where each was set. They are changed there and hold after a restart; secrets are masked.</PageHead>
      <form role="search" aria-label="Find a setting" className="mb-4 grid items-end gap-3 sm:grid-cols-[1fr_14rem_auto]" onSubmit={(event) => { event.preventDefault(); go({ search }); }}>
        <TextField label="Find" value={search} maxLength={200} onChange={(event) => setSearch(event.target.value)} placeholder="uploads" />
        <SelectField label="Set where" value={asked.origin ?? ""} onChange={(event) => go({ origin: (event.target.value || undefined) as AskedSettings["origin"] })}>
          <option value="">Anywhere</option>
          {ORIGINS.map((one) => <option key={one} value={one}>{FROM[one]}</option>)}
        </SelectField>
        <Button type="submit">Find</Button>
      </form>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      <div className="min-h-96">
        <DataTable caption="Settings in force" rows={list.rows ?? []} keyOf={(row) => row.name} empty={list.rows ? <Notice title="No setting is like that">docs/settings.md names them all.</Notice> : list.error ? null : <p role="status" className="text-soft">Asking…</p>} columns={[
          { head: "Setting", cell: (row) => <><code className="text-sm break-all">{row.name}</code><span className="block text-sm text-soft">{row.description}</span></> },
          { head: "Value", cell: (row) => <code className="text-sm break-all">{row.value === null || row.value === "" ? "–" : String(row.value)}</code> },
          { head: "Set by", cell: (row) => <Tag tone={row.origin === "default" ? "plain" : "accent"}>{FROM[row.origin]}</Tag> },
        ]} />
        {list.rows && list.rows.length > 0 && <ShowMore list={list} count={list.rows.length} noun="setting" />}
      </div>
    </>
  );
}
