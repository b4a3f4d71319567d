import { useState } from "react";
import { Problem } from "@/app/Problem";
import { Moment } from "@/control/live/Moment";
import { Button } from "@/design/Button";
import { Placeholder } from "@/design/Card";
import { TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { useTakedownPreview, type TakedownPreview } from "./useTakedowns";
import { t } from "@/language/control/takedowns";
import { withParts } from "@/language/room";

/** What a takedown would take out of sight; nothing is changed by looking. */
export function Preview({ subject, onAsk, onTake }: { subject: string | undefined; onAsk: (subject: string | undefined) => void; onTake: (found: TakedownPreview) => void }) {
  const [written, write] = useState(subject ?? "");
  const [before, remember] = useState(subject);
  if (subject !== before) {
    remember(subject);
    write(subject ?? "");
  }
  const { data, error, isFetching } = useTakedownPreview(subject);
  return (
    <>
      <form className="flex flex-wrap items-end gap-2" onSubmit={(event) => { event.preventDefault(); onAsk(written.trim() || undefined); }}>
        <div className="min-w-60 grow"><TextField label={t("subject")} value={written} onChange={(event) => write(event.target.value)} placeholder="https://www.example.org/page" spellCheck={false} /></div>
        <Button type="submit">{t("show")}</Button>
      </form>
      {error ? <div className="mt-3"><Problem problem={error} /></div> : null}
      {subject && !data && !error && <div className="mt-4"><Placeholder lines={7} /></div>}
      {data && (
        <div aria-busy={isFetching} className="mt-4 space-y-3">
          {data.inForce.length > 0 && <Notice tone="warn" title={t("already")}>{data.inForce.map((one) => <p key={one.id}>{t("by", { name: one.hiddenBy, reason: one.reason })}</p>)}</Notice>}
          <p className="font-serif text-xl">{data.captures === 0 ? t("nothingOf") : t("would", { count: data.captures })}</p>
          {data.captures > 0 && <p className="text-soft">{withParts(t("span", { sources: Object.entries(data.sources).map(([source, count]) => t("ofSource", { count, source })).join(", ") }), { first: <Moment at={data.firstCapture} />, last: <Moment at={data.lastCapture} /> })}</p>}
          {data.captures === 0 && data.kind === "page" && <p className="text-soft">{t("future")}</p>}
          <ul className="divide-y divide-line">
            {data.sample.map((one) => (
              <li key={one.id} className="flex flex-wrap gap-x-4 py-1.5 text-sm">
                <a href={`/api/snapshots/raw/${one.id}`}><Moment at={one.capturedAt} /></a>
                <span>{one.statusCode ?? "–"}</span>
                <span className="min-w-0 grow break-all">{one.url}</span>
                <span className="text-soft">{one.source}</span>
              </li>
            ))}
          </ul>
          {data.captures > data.sample.length && data.sample.length > 0 && <p className="text-sm text-soft">{t("newest", { shown: data.sample.length, all: data.captures })}</p>}
          <Button kind="danger" onClick={() => onTake(data)}>{t("take")}</Button>
        </div>
      )}
    </>
  );
}
