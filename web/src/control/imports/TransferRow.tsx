import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { Problem } from "@/app/Problem";
import { OperationRow } from "@/control/operations/OperationRow";
import { isOpen, useOperation } from "@/control/operations/useOperations";
import { Confirm } from "@/control/page/Confirm";
import { Meter } from "@/control/page/Meter";
import { bytes, duration } from "@/control/charts/format";
import { Button, buttonClass } from "@/design/Button";
import { Tag, type Tone } from "@/design/Tag";
import { transfers, type Transfer } from "./transfers";

const TONES: Record<Transfer["state"], Tone> = { waits: "plain", sends: "accent", paused: "warn", sent: "good", failed: "bad" };

/** A file on its way: how far it is, and then how far its import is. */
export function TransferRow({ transfer }: { transfer: Transfer }) {
  const { key, state, sent, size, rate } = transfer;
  const operation = useOperation(transfer.operationId);
  const [isLeaving, setLeaving] = useState(false);
  const hasEnded = operation.data !== undefined && !isOpen(operation.data);
  useEffect(() => { if (hasEnded) transfers.end(key); }, [hasEnded, key]);
  const left = rate > 0 && state === "sends" ? `, about ${duration((size - sent) / rate)} left at ${bytes(rate)}/s` : "";
  return (
    <li className="py-3">
      <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-1">
        {!transfer.isOver && <Tag tone={TONES[state]}>{state}</Tag>}
        <span className="min-w-0 grow font-semibold break-all">{transfer.name}</span>
        <span className="text-sm text-soft">for {transfer.source}</span>
        {state === "sends" && <Button onClick={() => transfers.pause(key)}>Pause</Button>}
        {(state === "paused" || state === "failed") && <Button onClick={() => transfers.goOn(key)}>Go on</Button>}
        {state === "sent" ? <Button kind="bare" onClick={() => void transfers.drop(key)}>Close</Button> : <Button kind="danger" onClick={() => { if (sent > 0) setLeaving(true); else void transfers.drop(key); }}>Leave off</Button>}
      </div>
      {!transfer.isOver && <Meter label={`Sending ${transfer.name}`} done={sent} total={size} text={`${bytes(sent)} of ${bytes(size)}${left}`} />}
      {transfer.note && <p role="status" className="mt-1 text-sm text-warn">{transfer.note}</p>}
      {transfer.problem ? <div className="mt-2"><Problem problem={transfer.problem} onAgain={() => transfers.goOn(key)} /></div> : null}
      {operation.data && <OperationRow operation={operation.data} />}
      {operation.data?.state === "done" && <Link to="/search" search={{ source: transfer.source }} className={buttonClass("main")}>Look at {transfer.source}</Link>}
      {isLeaving && (
        <Confirm title={`Leave off ${transfer.name}?`} action={`Remove ${bytes(sent)}`} onClose={() => setLeaving(false)} onConfirm={() => transfers.drop(key)}>
          <p>The {bytes(sent)} that arrived of it go; to import it, the whole file has to be sent again. To go on later, pause it instead.</p>
        </Confirm>
      )}
    </li>
  );
}
