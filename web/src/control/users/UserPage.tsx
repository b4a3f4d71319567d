import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { userRoute } from "@/app/careRoutes";
import { Moment } from "@/control/live/Moment";
import { Confirm } from "@/control/page/Confirm";
import { Done, type Deed } from "@/control/page/Done";
import { Facts } from "@/control/page/Facts";
import { PageHead } from "@/control/page/PageHead";
import { Secret } from "@/control/page/Secret";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { SelectField } from "@/design/Field";
import { Tag } from "@/design/Tag";
import { ROLES, STATE_TONES } from "./roles";
import { SessionTable, TokenTable } from "./tables";
import { useChangeUser, useDeleteUser, useEndUserSessions, useNewLink, useRevokeUserToken, useUser, useUserSessions, useUserTokens, type Role, type User } from "./useUsers";

/** One user: role, link, sessions, tokens. */
export function UserPage() {
  const id = Number(userRoute.useParams().id);
  const { data, error, refetch } = useUser(id);
  const [deed, setDeed] = useState<Deed | null>(null);
  return (
    <>
      <p className="mb-2 text-sm"><Link to="/control/users">All users</Link></p>
      <PageHead title={data?.name ?? "User"} />
      <Done deed={deed} onClose={() => setDeed(null)} />
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {data ? <Shown user={data} onDone={setDeed} /> : error ? null : <p role="status" className="min-h-96 text-soft">Opening…</p>}
    </>
  );
}

function Shown({ user, onDone }: { user: User; onDone: (deed: Deed) => void }) {
  const navigate = useNavigate();
  const change = useChangeUser(user.id);
  const link = useNewLink(user.id);
  const remove = useDeleteUser(user.id);
  const sessions = useUserSessions(user.id);
  const tokens = useUserTokens(user.id);
  const end = useEndUserSessions(user.id);
  const revoke = useRevokeUserToken(user.id);
  const [open, setOpen] = useState<"disable" | "delete" | "link" | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const isDisabled = user.state === "disabled";
  const setRole = async (role: Role) => {
    const was = user.role as Role;
    await change.mutateAsync({ role });
    onDone({ title: `${user.name} is ${role} now`, text: "It holds from the next request on.", undo: () => change.mutateAsync({ role: was }) });
  };
  const close = () => setOpen(null);
  return (
    <div className="space-y-4">
      <Card title="Account" actions={
        <>
          {!user.provider && <Button disabled={isDisabled} onClick={() => setOpen("link")}>New link</Button>}
          {isDisabled ? <Button disabled={change.isPending} onClick={() => change.mutate({ disabled: false }, { onSuccess: () => onDone({ title: `${user.name} can sign in again` }) })}>Enable</Button> : <Button kind="danger" onClick={() => setOpen("disable")}>Disable</Button>}
          <Button kind="danger" onClick={() => setOpen("delete")}>Delete</Button>
        </>
      }>
        {change.error ? <div className="mb-3"><Problem problem={change.error} /></div> : null}
        <div className="grid gap-5 sm:grid-cols-2">
          <Facts facts={[
            ["State", <Tag key="state" tone={STATE_TONES[user.state]}>{user.state}</Tag>],
            ["Signs in with", user.provider ?? "a password"],
            ["Last sign-in", <Moment key="in" at={user.signedInAt} none="never" />],
            ["Since", <Moment key="since" at={user.createdAt} />],
          ]} />
          <SelectField label="Role" value={user.role} disabled={change.isPending} onChange={(event) => { setRole(event.target.value as Role).catch(() => undefined); }}>{Object.entries(ROLES).map(([value, label]) => <option key={value} value={value}>{label}</option>)}</SelectField>
        </div>
      </Card>
      <Card title="Sessions" actions={<Button disabled={!sessions.rows?.length || end.isPending} onClick={() => end.mutate("all", { onSuccess: () => onDone({ title: "All sessions ended", text: `${user.name} has to sign in again.` }) })}>End all</Button>}>
        {end.error ? <div className="mb-3"><Problem problem={end.error} /></div> : null}
        <SessionTable list={sessions} onEnd={(session) => end.mutateAsync(session.id)} />
      </Card>
      <Card title="Tokens"><TokenTable list={tokens} onRevoke={(token) => revoke.mutateAsync(token.id)} /></Card>
      {open === "link" && (
        <Confirm title={`A new link for ${user.name}?`} action="Make the link" isDanger={false} onClose={close} onConfirm={async () => setSecret((await link.mutateAsync(undefined)).link)}>
          <p>Whoever opens it chooses a new password for this account. Links made before stop working.</p>
        </Confirm>
      )}
      {open === "disable" && (
        <Confirm title={`Disable ${user.name}?`} action="Disable" onClose={close} onConfirm={async () => {
          await change.mutateAsync({ disabled: true });
          onDone({ title: `${user.name} is disabled`, text: "Sessions and tokens hold no longer.", undo: () => change.mutateAsync({ disabled: false }) });
        }}><p>Sessions and tokens of this account stop working at once. It can be enabled again; what it did stays in the audit log.</p></Confirm>
      )}
      {open === "delete" && (
        <Confirm title={`Delete ${user.name}?`} action="Delete for good" onClose={close} onConfirm={async () => { await remove.mutateAsync(undefined); await navigate({ to: "/control/users" }); }}>
          <p>The account, its sessions and its tokens go for good. What it did stays in the audit log under its name.</p>
        </Confirm>
      )}
      {secret && <Secret title={`A link for ${user.name}`} secret={secret} onClose={() => setSecret(null)}>Pass it on in a safe way. It works once, and for 72 hours.</Secret>}
    </div>
  );
}
