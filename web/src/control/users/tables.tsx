import { useState } from "react";
import { Problem } from "@/app/Problem";
import type { components } from "@/api/schema";
import { Moment } from "@/control/live/Moment";
import { Confirm } from "@/control/page/Confirm";
import { ShowMore } from "@/control/page/ShowMore";
import type { usePieces } from "@/control/page/usePieces";
import { plain } from "@/control/page/words";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { Tag } from "@/design/Tag";

type SignedIn = components["schemas"]["SessionRecord"];
type Token = components["schemas"]["TokenRecord"];
type List<Row> = ReturnType<typeof usePieces<Row>>;

/** Browsers that are signed in; each can be ended. */
export function SessionTable({ list, onEnd }: { list: List<SignedIn>; onEnd: (session: SignedIn) => Promise<unknown> }) {
  const [ending, setEnding] = useState<SignedIn | null>(null);
  if (list.error) return <Problem problem={list.error} onAgain={() => void list.refetch()} />;
  return (
    <>
      <DataTable caption="Sessions" rows={list.rows ?? []} keyOf={(row) => row.id} empty={<p className="min-h-12 text-soft">{list.rows ? "No browser is signed in." : "Asking…"}</p>} columns={[
        { head: "Browser", cell: (row) => <span className="break-words">{row.agent || "not told"} {row.isCurrent && <Tag tone="accent">this one</Tag>}</span> },
        { head: "Address", cell: (row) => row.address },
        { head: "Seen", cell: (row) => <Moment at={row.seenAt} relative /> },
        { head: "Until", cell: (row) => <Moment at={row.expiresAt} /> },
        { head: <span className="sr-only">What can be done</span>, cell: (row) => <Button onClick={() => setEnding(row)}>End</Button> },
      ]} />
      {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="session" />}
      {ending && (
        <Confirm title="End this session?" action="End it" onClose={() => setEnding(null)} onConfirm={() => onEnd(ending)}>
          <p>{ending.isCurrent ? "You are signed out here and have to sign in again." : "That browser has to sign in again."}</p>
        </Confirm>
      )}
    </>
  );
}

/** Tokens of programs, without their secrets; each can be revoked. */
export function TokenTable({ list, onRevoke }: { list: List<Token>; onRevoke: (token: Token) => Promise<unknown> }) {
  const [revoking, setRevoking] = useState<Token | null>(null);
  if (list.error) return <Problem problem={list.error} onAgain={() => void list.refetch()} />;
  return (
    <>
      <DataTable caption="Tokens" rows={list.rows ?? []} keyOf={(row) => row.id} empty={<p className="min-h-12 text-soft">{list.rows ? "There is no token." : "Asking…"}</p>} columns={[
        { head: "Name", cell: (row) => <span className="break-words">{row.name}</span> },
        { head: "Begins with", cell: (row) => <code className="text-sm">{row.hint}</code> },
        { head: "May", cell: (row) => row.scopes.map(plain).join(", ") },
        { head: "Used", cell: (row) => <Moment at={row.usedAt} relative none="never" /> },
        { head: "Until", cell: (row) => <Moment at={row.expiresAt} /> },
        { head: <span className="sr-only">What can be done</span>, cell: (row) => <Button kind="danger" onClick={() => setRevoking(row)}>Revoke</Button> },
      ]} />
      {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="token" />}
      {revoking && (
        <Confirm title={`Revoke ${revoking.name}?`} action="Revoke" onClose={() => setRevoking(null)} onConfirm={() => onRevoke(revoking)}>
          <p>Programs that use it are refused from now on. A revoked token cannot be brought back; make a new one instead.</p>
        </Confirm>
      )}
    </>
  );
}
