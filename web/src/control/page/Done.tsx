import { useState, type ReactNode } from "react";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { t } from "@/language/control/common";

export interface Deed {
  title: string;
  text?: ReactNode;
  /** Takes it back; only where the server can. */
  undo?: () => Promise<unknown>;
}

/** Says what was done, and offers to take it back. */
export function Done({ deed, onClose }: { deed: Deed | null; onClose: () => void }) {
  const [problem, setProblem] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  if (!deed) return null;
  async function undo() {
    setBusy(true);
    setProblem(null);
    try {
      await deed?.undo?.();
      onClose();
    } catch (caught) {
      setProblem(caught);
    }
    setBusy(false);
  }
  return (
    <div className="mb-4 space-y-2">
      <Notice tone="good" title={deed.title} actions={
        <>
          {deed.undo && <Button disabled={isBusy} onClick={() => void undo()}>{t(isBusy ? "undoing" : "undo")}</Button>}
          <Button kind="bare" onClick={onClose}>{t("close")}</Button>
        </>
      }>{deed.text}</Notice>
      {problem ? <Problem problem={problem} /> : null}
    </div>
  );
}
