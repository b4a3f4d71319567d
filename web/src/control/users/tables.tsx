import { useState } from "react";
import { Problem } from "@/app/Problem";
import type { components } from "@/api/schema";
import { Moment } from "@/control/live/Moment";
import { Confirm } from "@/control/page/Confirm";
import { ShowMore } from "@/control/page/ShowMore";
import type { usePieces } from "@/control/page/usePieces";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { Tag } from "@/design/Tag";
import { t } from "@/language/control/users";
import { t as common } from "@/language/control/common";

type SignedIn = components["schemas"]["SessionRecord"];
type Token = components["schemas"]["TokenRecord"];
type List<Row> = ReturnType<typeof usePieces<Row>>;

/** Browsers that are signed in; each can be ended. */
export function SessionTable({ list, onEnd }: { list: List<SignedIn>; onEnd: (session: SignedIn) => Promise<unknown> }) {
  const [ending, setEnding] = useState<SignedIn | null>(null);
  if (list.error) return <Problem problem={list.error} onAgain={() => void list.refetch()} />;
  return (
    <>
      <DataTable caption={t("sessions")} rows={list.rows ?? []} keyOf={(row) => row.id} empty={<p className="min-h-12 text-soft">{list.rows ? t("noBrowser") : common("loading")}</p>} columns={[
        { head: t("browser"), cell: (row) => <span className="break-words">{row.agent || t("unknown")} {row.isCurrent && <Tag tone="accent">{t("thisOne")}</Tag>}</span> },
        { head: t("address"), cell: (row) => row.address },
        { head: t("seen"), cell: (row) => <Moment at={row.seenAt} relative /> },
        { head: t("until"), cell: (row) => <Moment at={row.expiresAt} /> },
        { head: <span className="sr-only">{common("actions")}</span>, cell: (row) => <Button onClick={() => setEnding(row)}>{t("end")}</Button> },
      ]} />
      {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="session" />}
      {ending && (
        <Confirm title={t("endTitle")} action={t("endIt")} onClose={() => setEnding(null)} onConfirm={() => onEnd(ending)}>
          <p>{ending.isCurrent ? t("endOwn") : t("endOther")}</p>
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
      <DataTable caption={t("tokens")} rows={list.rows ?? []} keyOf={(row) => row.id} empty={<p className="min-h-12 text-soft">{list.rows ? t("noToken") : common("loading")}</p>} columns={[
        { head: t("name"), cell: (row) => <span className="break-words">{row.name}</span> },
        { head: t("beginsWith"), cell: (row) => <code className="text-sm">{row.hint}</code> },
        { head: t("permissions"), cell: (row) => row.scopes.map((one) => t.of("scope", one)).join(", ") },
        { head: t("used"), cell: (row) => <Moment at={row.usedAt} relative none={common("never")} /> },
        { head: t("until"), cell: (row) => <Moment at={row.expiresAt} /> },
        { head: <span className="sr-only">{common("actions")}</span>, cell: (row) => <Button kind="danger" onClick={() => setRevoking(row)}>{t("revoke")}</Button> },
      ]} />
      {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="token" />}
      {revoking && (
        <Confirm title={t("revokeTitle", { name: revoking.name })} action={t("revoke")} onClose={() => setRevoking(null)} onConfirm={() => onRevoke(revoking)}>
          <p>{t("revokeHow")}</p>
        </Confirm>
      )}
    </>
  );
}
