import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Moment } from "@/control/live/Moment";
import { ShowMore } from "@/control/page/ShowMore";
import { plain } from "@/control/page/words";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag, type Tone } from "@/design/Tag";
import type { AskedFrontier } from "./asked";
import { useFrontierUrls, type QueuedUrl } from "./useFrontier";

const TONES: Record<QueuedUrl["status"], Tone> = { pending: "accent", deferred: "warn", completed: "good", failed: "bad", excluded: "plain", retried: "plain" };

/** Addresses with where they stand; each leads to the page that explains it. */
export function UrlList({ asked }: { asked: AskedFrontier }) {
  const list = useFrontierUrls(asked);
  if (list.error) return <Problem problem={list.error} onAgain={() => void list.refetch()} />;
  if (!list.rows) return <p role="status" className="min-h-96 text-soft">Loading…</p>;
  return (
    <div className="min-h-96" aria-busy={list.isFetching}>
      <DataTable
        caption="Addresses of the frontier"
        rows={list.rows}
        keyOf={(row) => row.id}
        empty={<Notice title={list.hasNextPage ? "Nothing among the first addresses" : "No matches"}>{list.hasNextPage ? "The search goes on with Show more." : "Remove a filter, or choose another run."}</Notice>}
        columns={[
          { head: "Address", cell: (row) => <Link to="/control/explain" search={{ url: row.url }} className="break-all">{row.url}</Link> },
          { head: "State", cell: (row) => <Tag tone={TONES[row.status]}>{row.status}</Tag> },
          { head: "Why", cell: (row) => <Why row={row} /> },
          { head: "Depth", isNumber: true, cell: (row) => row.depth },
          { head: "Priority", isNumber: true, cell: (row) => row.priority },
          { head: "When", cell: (row) => <span className="text-sm whitespace-nowrap">{row.completedAt ? <Moment at={row.completedAt} /> : row.scheduledFor ? <>not before <Moment at={row.scheduledFor} /></> : "in its turn"}</span> },
        ]}
      />
      <ShowMore list={list} count={list.rows.length} noun="address" many="addresses" />
    </div>
  );
}

function Why({ row }: { row: QueuedUrl }) {
  const said = [row.outcome && plain(row.outcome), row.reason && row.reason !== "ok" ? plain(row.reason) : null, row.statusCode, row.kind === "page" ? null : row.kind, row.attempt > 1 ? `attempt ${row.attempt}` : null].filter(Boolean).join(", ");
  return <span title={row.message ?? undefined} className="break-words">{said || "–"}</span>;
}
