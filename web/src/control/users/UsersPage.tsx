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

/** Who may sign in, and with which role. */
export function UsersPage() {
  const list = useUsers();
  const [isInviting, setInviting] = useState(false);
  const [invited, setInvited] = useState<Invited | null>(null);
  return (
    <>
      <PageHead title="Users" actions={!list.error && <Button kind="main" onClick={() => setInviting(true)}>Invite a user</Button>}>Who may sign in, and what each is trusted with. Nobody's password is known here: a link that works once lets a user choose one.</PageHead>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      <div className="min-h-64">
        <DataTable caption="Users" rows={list.rows ?? []} keyOf={(row) => row.id} empty={list.rows ? <Notice title="There is no user yet">Invite one: you get a link to pass on.</Notice> : list.error ? null : <p role="status" className="text-soft">Loading…</p>} columns={[
          { head: "Name", cell: (row) => <Link to="/control/users/$id" params={{ id: String(row.id) }} className="break-all">{row.name}</Link> },
          { head: "Role", cell: (row) => row.role },
          { head: "State", cell: (row) => <Tag tone={STATE_TONES[row.state]}>{row.state}</Tag> },
          { head: "Signs in with", cell: (row) => row.provider ?? "a password" },
          { head: "Last sign-in", cell: (row) => <Moment at={row.signedInAt} none="never" /> },
          { head: "Since", cell: (row) => <Moment at={row.createdAt} /> },
        ]} />
        {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="user" />}
      </div>
      {isInviting && <Invite onClose={() => setInviting(false)} onDone={setInvited} />}
      {invited && <Secret title={`A link for ${invited.user.name}`} secret={invited.link ?? ""} onClose={() => setInvited(null)}>Pass it on in a safe way. It works once, and for 72 hours: whoever opens it chooses the password.</Secret>}
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
    <Dialog isOpen title="Invite a user" onClose={onClose} actions={<><Button onClick={onClose}>Close</Button><Button kind="main" disabled={!name.trim() || invite.isPending} onClick={go}>{invite.isPending ? "Inviting…" : "Make the link"}</Button></>}>
      <form className="space-y-4" onSubmit={(event) => { event.preventDefault(); if (name.trim()) go(); }}>
        <TextField label="Name" value={name} maxLength={256} autoComplete="off" onChange={(event) => setName(event.target.value)} hint="What is typed to sign in: a name or a mail address." problem={refused} />
        <SelectField label="Role" value={role} onChange={(event) => setRole(event.target.value as Role)}>{Object.entries(ROLES).map(([value, label]) => <option key={value} value={value}>{label}</option>)}</SelectField>
        {invite.error && !refused ? <Problem problem={invite.error} /> : null}
      </form>
    </Dialog>
  );
}
