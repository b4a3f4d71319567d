import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Problem } from "@/app/Problem";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { useWords } from "@/language/LanguageContext";
import { digits } from "@/page/calendar";
import { told } from "./apart";
import { useContent, useParts, useRecord } from "./useCapture";

function Waiting({ error, again }: { error: unknown; again: () => void }): ReactNode {
  const { t } = useWords();
  return error ? <Problem problem={error} onAgain={again} /> : <p role="status" className="min-h-96 text-soft">{t("app.loading")}…</p>;
}

/** What the page says, without anything around it. */
export function Text({ id, language }: { id: number; language: string | null }) {
  const { t } = useWords();
  const { data, error, refetch } = useContent(id, "text");
  if (!data) return <Waiting error={error} again={() => void refetch()} />;
  if (!data.text) return <Notice title={t("view.noText")}>{t("view.noTextHow")}</Notice>;
  return (
    <article lang={language ?? undefined} className="mx-auto max-w-2xl text-lg leading-relaxed">
      {data.text.split("\n").map((line, at) => <p key={at} className="mb-3 break-words">{line}</p>)}
      {data.isCut && <Notice title={t("view.cut")} />}
    </article>
  );
}

/** The markup as the server sent it. */
export function Source({ id, rawUrl }: { id: number; rawUrl: string }) {
  const { t } = useWords();
  const { data, error, refetch } = useContent(id, "source");
  if (!data) return <Waiting error={error} again={() => void refetch()} />;
  return (
    <Card title={t("view.mode.source")} actions={<a href={rawUrl} target="_blank" rel="noreferrer">{t("view.rawBytes")}</a>}>
      {data.text === null
        ? <Notice title={t("view.noSource")}>{t("view.noSourceHow")}</Notice>
        : <pre tabIndex={0} aria-label={t("view.mode.source")} className="overflow-x-auto rounded-part bg-sunk p-3 font-mono text-xs whitespace-pre-wrap [overflow-wrap:anywhere]">{data.text}</pre>}
      {data.isCut && <div className="mt-3"><Notice title={t("view.cut")} /></div>}
    </Card>
  );
}

interface Header { name: string; value: string }

function HeaderTable({ caption, rows }: { caption: string; rows: Header[] }) {
  const { t } = useWords();
  return (
    <DataTable caption={caption} rows={rows.map((one, at) => ({ ...one, at }))} keyOf={(one) => one.at} empty={<p className="text-soft">–</p>}
      columns={[
        { head: t("view.headerName"), cell: (one) => <code className="text-sm font-semibold">{one.name}</code> },
        { head: t("view.headerValue"), cell: (one) => <code className="text-sm [overflow-wrap:anywhere]">{one.value}</code> },
      ]} />
  );
}

/** What the server said beside the page, and what the record says of itself. */
export function Headers({ id }: { id: number }) {
  const { t } = useWords();
  const { data, error, refetch } = useRecord(id);
  if (!data) return <Waiting error={error} again={() => void refetch()} />;
  return (
    <div className="space-y-5">
      <Card title={t("view.sent")}>
        <p className="mb-2 font-mono">{data.statusCode ?? "–"} {data.reason}</p>
        <HeaderTable caption={t("view.sent")} rows={data.headers} />
      </Card>
      <Card title={t("view.record")}><HeaderTable caption={t("view.record")} rows={data.recordHeaders} /></Card>
    </div>
  );
}

/** Everything that the page is made of: when each was captured, and what is missing. */
export function Parts({ id, at }: { id: number; at: string }) {
  const { t, language, moment } = useWords();
  const { data, error, refetch } = useParts(id);
  if (!data) return <Waiting error={error} again={() => void refetch()} />;
  const rows = [...data.parts].sort((one, other) => Number(one.snapshotId !== null) - Number(other.snapshotId !== null));
  return (
    <Card title={t("view.mode.parts")}>
      <p className="mb-3 text-soft">{t("view.partsIntro")}</p>
      <DataTable caption={t("view.mode.parts")} rows={rows} keyOf={(one) => one.url} empty={<Notice title={t("view.noParts")} />}
        columns={[
          { head: t("view.part"), cell: (one) => one.captureTimestamp ? <Link to="/view/$timestamp" params={{ timestamp: digits(one.captureTimestamp) }} search={{ url: one.url }} className="break-all">{one.url}</Link> : <Link to="/view/$timestamp" params={{ timestamp: at }} search={{ url: one.url }} className="break-all text-soft">{one.url}</Link> },
          { head: t("facet.type"), cell: (one) => one.mimeType ?? one.kind },
          { head: t("page.captured"), cell: (one) => one.captureTimestamp ? moment(one.captureTimestamp) : <Tag tone="bad">{t("view.missing")}</Tag> },
          { head: t("view.apart"), cell: (one) => one.secondsApart === null ? "" : one.secondsApart === 0 ? t("view.same") : t(one.secondsApart < 0 ? "view.older" : "view.newer", { time: told(one.secondsApart, language) }) },
        ]} />
    </Card>
  );
}
