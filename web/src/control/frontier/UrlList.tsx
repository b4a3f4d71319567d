import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Moment } from "@/control/live/Moment";
import { ShowMore } from "@/control/page/ShowMore";
import { outcomeWord, reasonText } from "@/control/executions/outcomes";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag, type Tone } from "@/design/Tag";
import type { AskedFrontier } from "./asked";
import { useFrontierUrls, type QueuedUrl } from "./useFrontier";
import { t } from "@/language/control/frontier";
import { withParts } from "@/language/room";

const TONES: Record<QueuedUrl["status"], Tone> = { pending: "accent", deferred: "warn", completed: "good", failed: "bad", excluded: "plain", retried: "plain" };

/** Addresses with where they stand; each leads to the page that explains it. */
export function UrlList({ asked }: { asked: AskedFrontier }) {
  const list = useFrontierUrls(asked);
  if (list.error) return <Problem problem={list.error} onAgain={() => void list.refetch()} />;
  if (!list.rows) return <p role="status" className="min-h-96 text-soft">{t("loading")}</p>;
  return (
    <div className="min-h-96" aria-busy={list.isFetching}>
      <DataTable
        caption={t("caption")}
        rows={list.rows}
        keyOf={(row) => row.id}
        empty={<Notice title={list.hasNextPage ? t("noneFirst") : t("noMatch")}>{list.hasNextPage ? t("goOn") : t("noMatchHow")}</Notice>}
        columns={[
          { head: t("address"), cell: (row) => <Link to="/control/explain" search={{ url: row.url }} className="break-all">{row.url}</Link> },
          { head: t("state"), cell: (row) => <Tag tone={TONES[row.status]}>{t(`status.${row.status}`)}</Tag> },
          { head: t("why"), cell: (row) => <Why row={row} /> },
          { head: t("depth"), isNumber: true, cell: (row) => row.depth },
          { head: t("priority"), isNumber: true, cell: (row) => row.priority },
          { head: t("when"), cell: (row) => <span className="text-sm whitespace-nowrap">{row.completedAt ? <Moment at={row.completedAt} /> : row.scheduledFor ? withParts(t("notBefore"), { time: <Moment at={row.scheduledFor} /> }) : t("inTurn")}</span> },
        ]}
      />
      <ShowMore list={list} count={list.rows.length} noun="address" />
    </div>
  );
}

function Why({ row }: { row: QueuedUrl }) {
  const said = [row.outcome && outcomeWord(row.word), row.reason && row.reason !== "ok" && !row.reason.startsWith("http_") ? reasonText(row.reason) : null, row.statusCode, row.kind === "page" ? null : t(`kinds.${row.kind}`), row.attempt > 1 ? t("attempt", { number: row.attempt }) : null].filter(Boolean).join(", ");
  return <span title={row.message ?? undefined} className="break-words">{said || "–"}</span>;
}
