import { useState } from "react";
import { Problem } from "@/app/Problem";
import { Moment } from "@/control/live/Moment";
import { counted } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { Placeholder } from "@/design/Card";
import { TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { useTakedownPreview, type TakedownPreview } from "./useTakedowns";

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
        <div className="min-w-60 grow"><TextField label="A page's address, or a capture's number" value={written} onChange={(event) => write(event.target.value)} placeholder="https://www.example.org/page" spellCheck={false} /></div>
        <Button type="submit">Show what disappears</Button>
      </form>
      {error ? <div className="mt-3"><Problem problem={error} /></div> : null}
      {subject && !data && !error && <div className="mt-4"><Placeholder lines={7} /></div>}
      {data && (
        <div aria-busy={isFetching} className="mt-4 space-y-3">
          {data.inForce.length > 0 && <Notice tone="warn" title="It is out of sight already">{data.inForce.map((one) => <p key={one.id}>By {one.hiddenBy}: {one.reason}</p>)}</Notice>}
          <p className="font-serif text-xl">{data.captures === 0 ? "Nothing is captured of it" : `${counted(data.captures, "capture")} would disappear`}</p>
          {data.captures > 0 && <p className="text-soft">{Object.entries(data.sources).map(([source, count]) => `${count} of ${source}`).join(", ")}; from <Moment at={data.firstCapture} /> to <Moment at={data.lastCapture} /></p>}
          {data.captures === 0 && data.kind === "page" && <p className="text-soft">Taking it down keeps captures out of sight that are still to come.</p>}
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
          {data.captures > data.sample.length && data.sample.length > 0 && <p className="text-sm text-soft">The newest {data.sample.length} of {data.captures.toLocaleString("en")} are shown.</p>}
          <Button kind="danger" onClick={() => onTake(data)}>Take down…</Button>
        </div>
      )}
    </>
  );
}
