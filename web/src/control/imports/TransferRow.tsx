import { useState } from "react";
import { Problem } from "@/app/Problem";
import { Confirm } from "@/control/page/Confirm";
import { Meter } from "@/control/page/Meter";
import { bytes, duration } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { Tag, type Tone } from "@/design/Tag";
import { transfers, type Transfer } from "./transfers";

const TONES: Record<Transfer["state"], Tone> = { waits: "plain", sends: "accent", paused: "warn", sent: "good", failed: "bad" };

/** A file that is being uploaded; once it has arrived, its import is listed. */
export function TransferRow({ transfer }: { transfer: Transfer }) {
  const { key, state, sent, size, rate } = transfer;
  const [isLeaving, setLeaving] = useState(false);
  const left = rate > 0 && state === "sends" ? `, about ${duration((size - sent) / rate)} left at ${bytes(rate)}/s` : "";
  return (
    <li className="py-3">
      <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-1">
        <Tag tone={TONES[state]}>{state}</Tag>
        <span className="min-w-0 grow font-semibold break-all">{transfer.name}</span>
        <span className="text-sm text-soft">for {transfer.source}</span>
        {state === "sends" && <Button onClick={() => transfers.pause(key)}>Pause</Button>}
        {(state === "paused" || state === "failed") && <Button onClick={() => transfers.goOn(key)}>Resume</Button>}
        <Button kind="danger" onClick={() => { if (sent > 0) setLeaving(true); else void transfers.drop(key); }}>Cancel</Button>
      </div>
      <Meter label={`Sending ${transfer.name}`} done={sent} total={size} text={`${bytes(sent)} of ${bytes(size)}${left}`} />
      {transfer.note && <p role="status" className="mt-1 text-sm text-warn">{transfer.note}</p>}
      {transfer.problem ? <div className="mt-2"><Problem problem={transfer.problem} onAgain={() => transfers.goOn(key)} /></div> : null}
      {isLeaving && (
        <Confirm title={`Cancel the upload of ${transfer.name}?`} action={`Remove ${bytes(sent)}`} onClose={() => setLeaving(false)} onConfirm={() => transfers.drop(key)}>
          <p>The {bytes(sent)} that arrived are deleted; to import the file, it has to be sent again as a whole. To continue later, pause it instead.</p>
        </Confirm>
      )}
    </li>
  );
}
