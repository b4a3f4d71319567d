import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { refusedAt } from "@/control/page/refused";
import { Secret } from "@/control/page/Secret";
import { ShowMore } from "@/control/page/ShowMore";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { Dialog } from "@/design/Dialog";
import { SelectField, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { ROLES, STATE_TONES } from "./roles";
import { useInvite, useUsers, type Invited, type Role } from "./useUsers";
import { t } from "@/language/control/users";
import { t as common } from "@/language/control/common";

/** Who may sign in, and with which role. */
export function UsersPage() {
  const list = useUsers();
  const [isInviting, setInviting] = useState(false);
  const [invited, setInvited] = useState<Invited | null>(null);
  return (
    <>
      <PageHead title={t("users")} actions={!list.error && <Button kind="main" onClick={() => setInviting(true)}>{t("invite")}</Button>}>{t("intro")}</PageHead>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      <div className="min-h-64">
        <DataTable caption={t("users")} rows={list.rows ?? []} keyOf={(row) => row.id} empty={list.rows ? <Notice title={t("none")}>{t("noneHow")}</Notice> : list.error ? null : <p role="status" className="text-soft">{common("loading")}</p>} columns={[
          { head: t("name"), cell: (row) => <Link to="/control/users/$id" params={{ id: String(row.id) }} className="break-all">{row.name}</Link> },
          { head: t("role"), cell: (row) => t.of("role", row.role) },
          { head: t("state"), cell: (row) => <Tag tone={STATE_TONES[row.state]}>{t(`state.${row.state}`)}</Tag> },
          { head: t("signsIn"), cell: (row) => row.provider ?? t("password") },
          { head: t("lastSignIn"), cell: (row) => <Moment at={row.signedInAt} none={common("never")} /> },
          { head: t("since"), cell: (row) => <Moment at={row.createdAt} /> },
        ]} />
        {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="user" />}
      </div>
      {isInviting && <Invite onClose={() => setInviting(false)} onDone={setInvited} />}
      {invited && <Secret title={t("linkFor", { name: invited.user.name })} secret={invited.link ?? ""} onClose={() => setInvited(null)}>{t("passOn")}</Secret>}
    </>
  );
}

function Invite({ onClose, onDone }: { onClose: () => void; onDone: (invited: Invited) => void }) {
  const invite = useInvite();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("operator");
  const refused = refusedAt(invite.error, "name");
  const go = () => invite.mutate({ name: name.trim(), role }, { onSuccess: (done) => { onClose(); onDone(done); } });
  return (
    <Dialog isOpen title={t("invite")} onClose={onClose} actions={<><Button onClick={onClose}>{common("close")}</Button><Button kind="main" disabled={!name.trim() || invite.isPending} onClick={go}>{invite.isPending ? t("inviting") : t("createLink")}</Button></>}>
      <form className="space-y-4" onSubmit={(event) => { event.preventDefault(); if (name.trim()) go(); }}>
        <TextField label={t("name")} value={name} maxLength={256} autoComplete="off" onChange={(event) => setName(event.target.value)} hint={t("nameHow")} problem={refused} />
        <SelectField label={t("role")} value={role} onChange={(event) => setRole(event.target.value as Role)}>{ROLES.map((one) => <option key={one} value={one}>{t(`may.${one}`)}</option>)}</SelectField>
        {invite.error && !refused ? <Problem problem={invite.error} /> : null}
      </form>
    </Dialog>
  );
}
