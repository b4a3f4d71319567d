import { useState } from "react";
import { Problem } from "@/app/Problem";
import { Confirm } from "@/control/page/Confirm";
import { Meter } from "@/control/page/Meter";
import { bytes, duration } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { Tag, type Tone } from "@/design/Tag";
import { transfers, type Transfer } from "./transfers";
import { t } from "@/language/control/imports";
import { t as common } from "@/language/control/common";

const TONES: Record<Transfer["state"], Tone> = { waits: "plain", sends: "accent", paused: "warn", sent: "good", failed: "bad" };

/** A file that is being uploaded; once it has arrived, its import is listed. */
export function TransferRow({ transfer }: { transfer: Transfer }) {
  const { key, state, sent, size, rate } = transfer;
  const [isLeaving, setLeaving] = useState(false);
  const done = { done: bytes(sent), total: bytes(size) };
  const far = rate > 0 && state === "sends" ? t("left", { ...done, time: duration((size - sent) / rate), rate: bytes(rate) }) : t("ofSize", done);
  return (
    <li className="py-3">
      <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-1">
        <Tag tone={TONES[state]}>{t(`state.${state}`)}</Tag>
        <span className="min-w-0 grow font-semibold break-all">{transfer.name}</span>
        <span className="text-sm text-soft">{t("for", { source: transfer.source })}</span>
        {state === "sends" && <Button onClick={() => transfers.pause(key)}>{t("pause")}</Button>}
        {(state === "paused" || state === "failed") && <Button onClick={() => transfers.goOn(key)}>{t("resume")}</Button>}
        <Button kind="danger" onClick={() => { if (sent > 0) setLeaving(true); else void transfers.drop(key); }}>{common("cancel")}</Button>
      </div>
      <Meter label={t("sending", { name: transfer.name })} done={sent} total={size} text={far} />
      {transfer.note && <p role="status" className="mt-1 text-sm text-warn">{transfer.note}</p>}
      {transfer.problem ? <div className="mt-2"><Problem problem={transfer.problem} onAgain={() => transfers.goOn(key)} /></div> : null}
      {isLeaving && (
        <Confirm title={t("cancelTitle", { name: transfer.name })} action={t("removeBytes", { size: bytes(sent) })} onClose={() => setLeaving(false)} onConfirm={() => transfers.drop(key)}>
          <p>{t("cancelHow", { size: bytes(sent) })}</p>
        </Confirm>
      )}
    </li>
  );
}
