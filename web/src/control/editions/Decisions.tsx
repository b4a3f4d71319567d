import { useState, type FormEvent } from "react";
import { useMay } from "@/app/useSession";
import { Moment } from "@/control/live/Moment";
import { Confirm } from "@/control/page/Confirm";
import type { Deed } from "@/control/page/Done";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField, TextField } from "@/design/Field";
import { Tag } from "@/design/Tag";
import { useDecidePage, type EditionDetail, type PageState } from "./useEditions";
import { t } from "@/language/control/editions";
import { t as common } from "@/language/control/common";

interface Decision { url: string; state: string; reason: string; decided_at: string; decided_by: string | null }

/** What operators decided about single pages of an edition; they decide and undo it here. */
export function Decisions({ edition, onDone }: { edition: EditionDetail; onDone: (deed: Deed) => void }) {
  const decide = useDecidePage(edition.editionId);
  const mayOperate = useMay("operate");
  const [url, setUrl] = useState("");
  const [state, setState] = useState<PageState>("accepted");
  const [asking, setAsking] = useState<{ url: string; state: PageState } | null>(null);
  const decisions = (edition.coverageSummary?.["decisions"] ?? []) as Decision[];
  function ask(event: FormEvent) {
    event.preventDefault();
    setAsking({ url: url.trim(), state });
  }
  return (
    <>
      <DataTable caption={t("decisions")} rows={decisions} keyOf={(row) => row.url} empty={<p className="text-soft">{t("noDecisions")}</p>} columns={[
        { head: t("page"), cell: (row) => <span className="break-all">{row.url}</span> },
        { head: t("decision"), cell: (row) => <Tag tone={row.state === "accepted" ? "good" : "plain"}>{t.of("state", row.state)}</Tag> },
        { head: common("reason"), cell: (row) => <span className="break-words">{row.reason}</span> },
        { head: t("by"), cell: (row) => <>{row.decided_by ?? t("unknown")}, <Moment at={row.decided_at} /></> },
        ...(mayOperate ? [{ head: t("change"), cell: (row: Decision) => <Button aria-label={t("undoOf", { url: row.url })} onClick={() => setAsking({ url: row.url, state: "pending" })}>{t("undoAsk")}</Button> }] : []),
      ]} />
      {mayOperate && (
        <form className="mt-4 grid items-end gap-3 sm:grid-cols-[2fr_1fr_auto]" onSubmit={ask}>
          <TextField label={t("addressOfPage")} type="url" required maxLength={8192} value={url} onChange={(event) => setUrl(event.target.value)} />
          <SelectField label={t("decision")} value={state} onChange={(event) => setState(event.target.value as PageState)}>
            <option value="accepted">{t("acceptIt")}</option>
            <option value="excluded">{t("excludeIt")}</option>
          </SelectField>
          <Button type="submit">{t("decide")}</Button>
        </form>
      )}
      {asking && (
        <Confirm title={t(`ask.${asking.state}`)} action={t(`act.${asking.state}`)} isDanger={false} reason={common("reason")} onClose={() => setAsking(null)} onConfirm={async (reason) => {
          await decide.mutateAsync({ ...asking, reason });
          setUrl("");
          onDone({ title: t(`done.${asking.state}`), text: t("writeToUpdate", { url: asking.url }) });
        }}>
          <p className="break-all">{asking.url}</p>
          <p>{t(`effect.${asking.state}`)} {t("reportShows")}</p>
        </Confirm>
      )}
    </>
  );
}
