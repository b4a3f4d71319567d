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

interface Decision { url: string; state: string; reason: string; decided_at: string; decided_by: string | null }

const ACTS: Record<PageState, [action: string, title: string, done: string, effect: string]> = {
  accepted: ["Accept", "Accept that this page is missing?", "The page may be missing", "The page no longer counts as a gap of the edition."],
  excluded: ["Exclude", "Exclude this page?", "The page is excluded", "The page no longer belongs to the edition."],
  pending: ["Undo", "Undo this decision?", "The decision is undone", "The page counts again as it was captured. The audit log keeps both entries."],
};

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
      <DataTable caption="Decisions about pages" rows={decisions} keyOf={(row) => row.url} empty={<p className="text-soft">No decisions yet.</p>} columns={[
        { head: "Page", cell: (row) => <span className="break-all">{row.url}</span> },
        { head: "Decision", cell: (row) => <Tag tone={row.state === "accepted" ? "good" : "plain"}>{row.state}</Tag> },
        { head: "Reason", cell: (row) => <span className="break-words">{row.reason}</span> },
        { head: "By", cell: (row) => <>{row.decided_by ?? "unknown"}, <Moment at={row.decided_at} /></> },
        ...(mayOperate ? [{ head: "Change", cell: (row: Decision) => <Button aria-label={`Undo the decision about ${row.url}`} onClick={() => setAsking({ url: row.url, state: "pending" })}>Undo…</Button> }] : []),
      ]} />
      {mayOperate && (
        <form className="mt-4 grid items-end gap-3 sm:grid-cols-[2fr_1fr_auto]" onSubmit={ask}>
          <TextField label="Address of a page" type="url" required maxLength={8192} value={url} onChange={(event) => setUrl(event.target.value)} />
          <SelectField label="Decision" value={state} onChange={(event) => setState(event.target.value as PageState)}>
            <option value="accepted">Accept that it is missing</option>
            <option value="excluded">Exclude it from the edition</option>
          </SelectField>
          <Button type="submit">Decide…</Button>
        </form>
      )}
      {asking && (
        <Confirm title={ACTS[asking.state][1]} action={ACTS[asking.state][0]} isDanger={false} reason="Reason" onClose={() => setAsking(null)} onConfirm={async (reason) => {
          await decide.mutateAsync({ ...asking, reason });
          setUrl("");
          onDone({ title: ACTS[asking.state][2], text: `${asking.url}. Write the report to update the figures.` });
        }}>
          <p className="break-all">{asking.url}</p>
          <p>{ACTS[asking.state][3]} The next report shows the reason.</p>
        </Confirm>
      )}
    </>
  );
}
