import { useState, type ReactNode } from "react";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { TextField } from "@/design/Field";
import { t } from "@/language/control/common";

interface Asked {
  title: string;
  /** What is lost, and what stays. */
  children: ReactNode;
  /** The word on the button: what is done. */
  action: string;
  isDanger?: boolean;
  /** False while something is still missing. */
  isComplete?: boolean;
  /** A reason is asked for, and kept; this is its label. */
  reason?: string;
  /** Does it; what takes long tells how far it is. */
  onConfirm: (reason: string, tell: (how: string) => void) => Promise<unknown>;
  onClose: () => void;
}

/** Asks before something is lost. Mount it to open it; it closes once what was asked for is done. */
export function Confirm({ title, children, action, isDanger = true, isComplete = true, reason, onConfirm, onClose }: Asked) {
  const [why, setWhy] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [far, tell] = useState("");
  const [problem, setProblem] = useState<unknown>(null);
  const isReady = !isBusy && isComplete && (!reason || why.trim().length >= 3);
  async function go() {
    setBusy(true);
    setProblem(null);
    try {
      await onConfirm(why.trim(), tell);
      onClose();
    } catch (caught) {
      setProblem(caught);
      setBusy(false);
    }
  }
  return (
    <Dialog isOpen title={title} onClose={onClose} actions={
      <>
        <Button onClick={onClose}>{t("cancel")}</Button>
        <Button kind={isDanger ? "danger" : "main"} disabled={!isReady} onClick={() => void go()}>{isBusy ? t("working") : action}</Button>
      </>
    }>
      <div className="space-y-3">
        {children}
        {reason && <TextField label={reason} value={why} maxLength={2000} onChange={(event) => setWhy(event.target.value)} hint={t("reasonHint")} />}
        <p role="status" className="text-soft tabular-nums">{isBusy ? far : ""}</p>
        {problem ? <Problem problem={problem} /> : null}
      </div>
    </Dialog>
  );
}
