import { useState } from "react";
import { Problem } from "@/app/Problem";
import { useSession } from "@/app/useSession";
import { Done, type Deed } from "@/control/page/Done";
import { PageHead } from "@/control/page/PageHead";
import { Secret } from "@/control/page/Secret";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { Dialog } from "@/design/Dialog";
import { SelectField, TextField } from "@/design/Field";
import { SessionTable, TokenTable } from "./tables";
import { useEndOwnSessions, useMakeToken, useOwnSessions, useOwnTokens, useRevokeOwnToken, type TokenForm } from "./useAccount";

type Scope = TokenForm["scopes"][number];

const SCOPES: Record<Scope, string> = { read: "Read what you may read", own_account: "Change your own account", watch: "Watch crawls and figures", operate: "Run crawls, care for the archive", administer: "Administer" };

/** Your own tokens for programs, and the browsers in which you are signed in. */
export function SessionsPage() {
  const sessions = useOwnSessions();
  const tokens = useOwnTokens();
  const end = useEndOwnSessions();
  const revoke = useRevokeOwnToken();
  const [isMaking, setMaking] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const [deed, setDeed] = useState<Deed | null>(null);
  return (
    <>
      <PageHead title="Tokens and sessions">Your own: tokens for programs that act in your name, and the browsers in which you are signed in. Your password is changed under <a href="/account">Account</a>.</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      <div className="space-y-4">
        <Card title="Tokens" actions={<Button kind="main" onClick={() => setMaking(true)}>Make a token</Button>}><TokenTable list={tokens} onRevoke={(token) => revoke.mutateAsync(token.id)} /></Card>
        <Card title="Sessions" actions={<Button disabled={end.isPending} onClick={() => end.mutate("others", { onSuccess: () => setDeed({ title: "All other sessions ended" }) })}>End all others</Button>}>
          {end.error ? <div className="mb-3"><Problem problem={end.error} /></div> : null}
          <SessionTable list={sessions} onEnd={(session) => end.mutateAsync(session.id)} />
        </Card>
      </div>
      {isMaking && <MakeToken onClose={() => setMaking(false)} onDone={setSecret} />}
      {secret && <Secret title="Your new token" secret={secret} onClose={() => setSecret(null)}>{"A program sends it with each request, as Authorization: Bearer and the token."}</Secret>}
    </>
  );
}

function MakeToken({ onClose, onDone }: { onClose: () => void; onDone: (secret: string) => void }) {
  const make = useMakeToken();
  const allowed = useSession().data?.permissions ?? [];
  const [name, setName] = useState("");
  const [days, setDays] = useState("90");
  const [scopes, setScopes] = useState<Scope[]>(["read"]);
  const isReady = name.trim() !== "" && scopes.length > 0 && !make.isPending;
  const go = () => make.mutate({ name: name.trim(), days: Number(days), scopes }, { onSuccess: (done) => { onClose(); onDone(done.secret); } });
  return (
    <Dialog isOpen title="Make a token" onClose={onClose} actions={<><Button onClick={onClose}>Close</Button><Button kind="main" disabled={!isReady} onClick={go}>{make.isPending ? "Making…" : "Make it"}</Button></>}>
      <form className="space-y-4" onSubmit={(event) => { event.preventDefault(); if (isReady) go(); }}>
        <TextField label="Name" value={name} maxLength={100} onChange={(event) => setName(event.target.value)} hint="To tell it from others: where it is used." />
        <SelectField label="Holds for" value={days} onChange={(event) => setDays(event.target.value)}>{[7, 30, 90, 366].map((one) => <option key={one} value={one}>{one === 366 ? "a year" : `${one} days`}</option>)}</SelectField>
        <fieldset>
          <legend className="mb-1 font-semibold">What it may do</legend>
          {(Object.keys(SCOPES) as Scope[]).filter((scope) => allowed.includes(scope)).map((scope) => (
            <label key={scope} className="flex min-h-8 items-center gap-2"><input type="checkbox" className="size-4 accent-accent" checked={scopes.includes(scope)} onChange={(event) => setScopes(event.target.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))} />{SCOPES[scope]}</label>
          ))}
        </fieldset>
        {make.error ? <Problem problem={make.error} /> : null}
      </form>
    </Dialog>
  );
}
