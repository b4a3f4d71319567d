import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { takedownsRoute } from "@/app/careRoutes";
import { Confirm } from "@/control/page/Confirm";
import { Done, type Deed } from "@/control/page/Done";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { ShowMore } from "@/control/page/ShowMore";
import { counted } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { SelectField, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { Preview } from "./Preview";
import { readAskedTakedowns, type AskedTakedowns } from "./asked";
import { useHide, useTakedowns, useUnhide, type Takedown, type TakedownPreview } from "./useTakedowns";

/** What is taken out of sight, by whom and why; every takedown can be undone, for no byte is removed. */
export function TakedownsPage() {
  const asked = readAskedTakedowns({ ...takedownsRoute.useSearch() });
  const navigate = useNavigate();
  const hide = useHide();
  const unhide = useUnhide();
  const [found, setFound] = useState<TakedownPreview | null>(null);
  const [lifting, setLifting] = useState<Takedown | null>(null);
  const [deed, setDeed] = useState<Deed | null>(null);
  const go = (change: Partial<AskedTakedowns>) => void navigate({ to: "/control/takedowns", search: readAskedTakedowns({ ...asked, ...change }), replace: true, resetScroll: false });
  async function take(what: TakedownPreview, reason: string) {
    const done = await hide.mutateAsync({ subject: what.subject, reason });
    setDeed({ title: `${counted(done.captures, "capture is", "captures are")} out of sight now`, text: what.subject, undo: () => unhide.mutateAsync(done.id) });
    go({ subject: undefined });
  }
  return (
    <>
      <PageHead title="Takedowns">What is taken out of sight of every reader: search, replay, exports and lists at once. No byte is removed, and each can be undone.</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      <div className="space-y-4">
        <Card title="Take something down"><Preview subject={asked.subject} onAsk={(subject) => go({ subject })} onTake={setFound} /></Card>
        <Card title="Takedowns"><List asked={asked} onChange={go} onLift={setLifting} /></Card>
      </div>
      {found && (
        <Confirm title={`Take ${counted(found.captures, "capture")} out of sight?`} action="Take down" reason="Why" onClose={() => setFound(null)} onConfirm={(reason) => take(found, reason)}>
          <p className="break-all">{found.subject}</p>
          <p>No reader finds or opens {found.captures === 1 ? "it" : "them"} any more{found.kind === "page" ? ", nor any capture of this page that is still to come, under all spellings of its address" : ""}. The WARC files keep their bytes; you can undo it at any time.</p>
        </Confirm>
      )}
      {lifting && (
        <Confirm title="Show it again?" action="Show it again" isDanger={false} onClose={() => setLifting(null)} onConfirm={async () => {
          const done = await unhide.mutateAsync(lifting.id);
          setDeed({ title: `${counted(done.captures, "capture")} can be seen again`, text: lifting.subject });
        }}>
          <p className="break-all">{lifting.subject}</p>
          <p>It was taken down by {lifting.hiddenBy}: {lifting.reason}</p>
        </Confirm>
      )}
    </>
  );
}

function List({ asked, onChange, onLift }: { asked: AskedTakedowns; onChange: (change: Partial<AskedTakedowns>) => void; onLift: (one: Takedown) => void }) {
  const list = useTakedowns(asked);
  const [search, setSearch] = useState(asked.search ?? "");
  return (
    <>
      <form role="search" aria-label="Find a takedown" className="mb-3 grid items-end gap-3 sm:grid-cols-[1fr_12rem_auto]" onSubmit={(event) => { event.preventDefault(); onChange({ search }); }}>
        <TextField label="Find" value={search} maxLength={200} onChange={(event) => setSearch(event.target.value)} placeholder="part of an address or a reason" />
        <SelectField label="State" value={asked.state ?? ""} onChange={(event) => onChange({ state: (event.target.value || undefined) as AskedTakedowns["state"] })}>
          <option value="">All</option>
          <option value="in_force">In force</option>
          <option value="lifted">Lifted</option>
        </SelectField>
        <Button type="submit">Find</Button>
      </form>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      <DataTable caption="Takedowns" rows={list.rows ?? []} keyOf={(row) => row.id} empty={list.rows ? <Notice title="Nothing is taken down">{asked.search || asked.state ? "Nothing is like that; look for something else." : "Every capture of a public source can be seen. A request is answered with the form above."}</Notice> : <p className="min-h-24 text-soft">Asking…</p>} columns={[
        { head: "What", cell: (row) => <span className="break-all">{row.kind === "snapshot" ? `capture ${row.snapshotId}` : row.subject}</span> },
        { head: "State", cell: (row) => <Tag tone={row.state === "in_force" ? "warn" : "plain"}>{row.state === "in_force" ? "in force" : "lifted"}</Tag> },
        { head: "Reason", cell: (row) => <span className="break-words">{row.reason}</span> },
        { head: "By", cell: (row) => <>{row.hiddenBy}, <Moment at={row.hiddenAt} />{row.shownAt && <><br />shown again by {row.shownBy}, <Moment at={row.shownAt} /></>}</> },
        { head: <span className="sr-only">What can be done</span>, cell: (row) => row.state === "in_force" && <Button onClick={() => onLift(row)}>Undo</Button> },
      ]} />
      {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="takedown" />}
    </>
  );
}
