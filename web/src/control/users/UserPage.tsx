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
import { t } from "@/language/control/users";
import { t as common } from "@/language/control/common";

/** One user: role, link, sessions, tokens. */
export function UserPage() {
  const id = Number(userRoute.useParams().id);
  const { data, error, refetch } = useUser(id);
  const [deed, setDeed] = useState<Deed | null>(null);
  return (
    <>
      <p className="mb-2 text-sm"><Link to="/control/users">{t("allUsers")}</Link></p>
      <PageHead title={data?.name ?? t("user")} />
      <Done deed={deed} onClose={() => setDeed(null)} />
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {data ? <Shown user={data} onDone={setDeed} /> : error ? null : <p role="status" className="min-h-96 text-soft">{common("loading")}</p>}
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
    onDone({ title: t("isNow", { name: user.name, role: t.of("role", role) }), text: t("isNowHow"), undo: () => change.mutateAsync({ role: was }) });
  };
  const close = () => setOpen(null);
  return (
    <div className="space-y-4">
      <Card title={t("account")} actions={
        <>
          {!user.provider && <Button disabled={isDisabled} onClick={() => setOpen("link")}>{t("newLink")}</Button>}
          {isDisabled ? <Button disabled={change.isPending} onClick={() => change.mutate({ disabled: false }, { onSuccess: () => onDone({ title: t("canSignIn", { name: user.name }) }) })}>{t("enable")}</Button> : <Button kind="danger" onClick={() => setOpen("disable")}>{t("disable")}</Button>}
          <Button kind="danger" onClick={() => setOpen("delete")}>{t("delete")}</Button>
        </>
      }>
        {change.error ? <div className="mb-3"><Problem problem={change.error} /></div> : null}
        <div className="grid gap-5 sm:grid-cols-2">
          <Facts facts={[
            [t("state"), <Tag key="state" tone={STATE_TONES[user.state]}>{t(`state.${user.state}`)}</Tag>],
            [t("signsIn"), user.provider ?? t("password")],
            [t("lastSignIn"), <Moment key="in" at={user.signedInAt} none={common("never")} />],
            [t("since"), <Moment key="since" at={user.createdAt} />],
          ]} />
          <SelectField label={t("role")} value={user.role} disabled={change.isPending} onChange={(event) => { setRole(event.target.value as Role).catch(() => undefined); }}>{ROLES.map((one) => <option key={one} value={one}>{t(`may.${one}`)}</option>)}</SelectField>
        </div>
      </Card>
      <Card title={t("sessions")} actions={<Button disabled={!sessions.rows?.length || end.isPending} onClick={() => end.mutate("all", { onSuccess: () => onDone({ title: t("allEnded"), text: t("signInAgain", { name: user.name }) }) })}>{t("endAll")}</Button>}>
        {end.error ? <div className="mb-3"><Problem problem={end.error} /></div> : null}
        <SessionTable list={sessions} onEnd={(session) => end.mutateAsync(session.id)} />
      </Card>
      <Card title={t("tokens")}><TokenTable list={tokens} onRevoke={(token) => revoke.mutateAsync(token.id)} /></Card>
      {open === "link" && (
        <Confirm title={t("newLinkFor", { name: user.name })} action={t("createLink")} isDanger={false} onClose={close} onConfirm={async () => setSecret((await link.mutateAsync(undefined)).link)}>
          <p>{t("newLinkHow")}</p>
        </Confirm>
      )}
      {open === "disable" && (
        <Confirm title={t("disableTitle", { name: user.name })} action={t("disable")} onClose={close} onConfirm={async () => {
          await change.mutateAsync({ disabled: true });
          onDone({ title: t("disabled", { name: user.name }), text: t("disabledHow"), undo: () => change.mutateAsync({ disabled: false }) });
        }}><p>{t("disableHow")}</p></Confirm>
      )}
      {open === "delete" && (
        <Confirm title={t("deleteTitle", { name: user.name })} action={t("deleteForGood")} onClose={close} onConfirm={async () => { await remove.mutateAsync(undefined); await navigate({ to: "/control/users" }); }}>
          <p>{t("deleteHow")}</p>
        </Confirm>
      )}
      {secret && <Secret title={t("linkFor", { name: user.name })} secret={secret} onClose={() => setSecret(null)}>{t("passOn")}</Secret>}
    </div>
  );
}
