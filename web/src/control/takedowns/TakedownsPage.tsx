import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { takedownsRoute } from "@/app/careRoutes";
import { Confirm } from "@/control/page/Confirm";
import { Done, type Deed } from "@/control/page/Done";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { ShowMore } from "@/control/page/ShowMore";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { SelectField, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { Preview } from "./Preview";
import { readAskedTakedowns, type AskedTakedowns } from "./asked";
import { useHide, useTakedowns, useUnhide, type Takedown, type TakedownPreview } from "./useTakedowns";
import { t } from "@/language/control/takedowns";

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
    setDeed({ title: t("took", { count: done.captures }), text: what.subject, undo: () => unhide.mutateAsync(done.id) });
    go({ subject: undefined });
  }
  return (
    <>
      <PageHead title={t("takedowns")}>{t("intro")}</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      <div className="space-y-4">
        <Card title={t("takeSome")}><Preview subject={asked.subject} onAsk={(subject) => go({ subject })} onTake={setFound} /></Card>
        <Card title={t("takedowns")}><List asked={asked} onChange={go} onLift={setLifting} /></Card>
      </div>
      {found && (
        <Confirm title={t("takeTitle", { count: found.captures })} action={t("takeDo")} reason={t("why")} onClose={() => setFound(null)} onConfirm={(reason) => take(found, reason)}>
          <p className="break-all">{found.subject}</p>
          <p>{t(found.kind === "page" ? "takePage" : "takeCapture")}</p>
        </Confirm>
      )}
      {lifting && (
        <Confirm title={t("againTitle")} action={t("again")} isDanger={false} onClose={() => setLifting(null)} onConfirm={async () => {
          const done = await unhide.mutateAsync(lifting.id);
          setDeed({ title: t("shownAgain", { count: done.captures }), text: lifting.subject });
        }}>
          <p className="break-all">{lifting.subject}</p>
          <p>{t("wasBy", { name: lifting.hiddenBy, reason: lifting.reason })}</p>
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
      <form role="search" aria-label={t("findForm")} className="mb-3 grid items-end gap-3 sm:grid-cols-[1fr_12rem_auto]" onSubmit={(event) => { event.preventDefault(); onChange({ search }); }}>
        <TextField label={t("find")} value={search} maxLength={200} onChange={(event) => setSearch(event.target.value)} placeholder={t("findHint")} />
        <SelectField label={t("state")} value={asked.state ?? ""} onChange={(event) => onChange({ state: (event.target.value || undefined) as AskedTakedowns["state"] })}>
          <option value="">{t("all")}</option>
          <option value="in_force">{t("inForce")}</option>
          <option value="lifted">{t("lifted")}</option>
        </SelectField>
        <Button type="submit">{t("find")}</Button>
      </form>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      <DataTable caption={t("takedowns")} rows={list.rows ?? []} keyOf={(row) => row.id} empty={list.rows ? <Notice title={t("none")}>{asked.search || asked.state ? t("noMatch") : t("noneHow")}</Notice> : <p className="min-h-24 text-soft">{t("loading")}</p>} columns={[
        { head: t("what"), cell: (row) => <span className="break-all">{row.kind === "snapshot" ? t("captureName", { id: String(row.snapshotId) }) : row.subject}</span> },
        { head: t("state"), cell: (row) => <Tag tone={row.state === "in_force" ? "warn" : "plain"}>{row.state === "in_force" ? t("isInForce") : t("isLifted")}</Tag> },
        { head: t("reason"), cell: (row) => <span className="break-words">{row.reason}</span> },
        { head: t("byHead"), cell: (row) => <>{row.hiddenBy}, <Moment at={row.hiddenAt} />{row.shownAt && <><br />{t("shownBy", { name: row.shownBy ?? "–" })}, <Moment at={row.shownAt} /></>}</> },
        { head: <span className="sr-only">{t("actions")}</span>, cell: (row) => row.state === "in_force" && <Button onClick={() => onLift(row)}>{t("undo")}</Button> },
      ]} />
      {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="takedown" />}
    </>
  );
}
