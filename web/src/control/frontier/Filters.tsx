import { useState } from "react";
import { Button } from "@/design/Button";
import { SelectField, TextField } from "@/design/Field";
import { KINDS, STATUSES, type AskedFrontier } from "./asked";
import { t } from "@/language/control/frontier";

/** What of the frontier is shown; it stands in the address bar. */
export function Filters({ asked, onChange }: { asked: AskedFrontier; onChange: (change: Partial<AskedFrontier>) => void }) {
  const [search, setSearch] = useState(asked.search ?? "");
  const [domain, setDomain] = useState(asked.domain ?? "");
  const [execution, setExecution] = useState(asked.execution?.toString() ?? "");
  const isAny = Object.keys(asked).length > 0;
  function all() {
    setSearch("");
    setDomain("");
    setExecution("");
    onChange({ search: undefined, domain: undefined, execution: undefined, status: undefined, kind: undefined });
  }
  return (
    <form role="search" aria-label={t("filter")} className="mb-4 grid items-end gap-3 sm:grid-cols-2 lg:grid-cols-[1fr_1fr_10rem_9rem_8rem_auto]" onSubmit={(event) => {
      event.preventDefault();
      onChange({ search, domain, execution: execution ? Number(execution) : undefined });
    }}>
      <TextField label={t("part")} value={search} maxLength={200} onChange={(event) => setSearch(event.target.value)} />
      <TextField label={t("domain")} value={domain} maxLength={255} onChange={(event) => setDomain(event.target.value)} placeholder="example.org" />
      <SelectField label={t("state")} value={asked.status ?? ""} onChange={(event) => onChange({ status: (event.target.value || undefined) as AskedFrontier["status"] })}>
        <option value="">{t("any")}</option>
        {STATUSES.map((one) => <option key={one} value={one}>{t(`status.${one}`)}</option>)}
      </SelectField>
      <SelectField label={t("kind")} value={asked.kind ?? ""} onChange={(event) => onChange({ kind: (event.target.value || undefined) as AskedFrontier["kind"] })}>
        <option value="">{t("any")}</option>
        {KINDS.map((one) => <option key={one} value={one}>{t(`kinds.${one}`)}</option>)}
      </SelectField>
      <TextField label={t("run")} value={execution} inputMode="numeric" pattern="\d*" placeholder={t("newest")} onChange={(event) => setExecution(event.target.value)} />
      <div className="flex gap-2">
        <Button type="submit">{t("doFilter")}</Button>
        {isAny && <Button kind="bare" onClick={all}>{t("all")}</Button>}
      </div>
    </form>
  );
}
