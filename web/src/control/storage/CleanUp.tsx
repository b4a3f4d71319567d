import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import type { Deed } from "@/control/page/Done";
import { bytes } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { useCleanup } from "./useStorage";
import { t } from "@/language/control/storage";
import { t as common } from "@/language/control/common";

/** What could go is shown first; then it goes. No capture is among it. */
export function CleanUp({ onClose, onDone }: { onClose: () => void; onDone: (deed: Deed) => void }) {
  const preview = useCleanup();
  const apply = useCleanup();
  const { mutate } = preview;
  useEffect(() => mutate(false), [mutate]);
  const found = preview.data;
  const goes = found?.items.filter((one) => !one.refusal) ?? [];
  function clean() {
    apply.mutate(true, { onSuccess: (done) => {
      onDone({ title: t("freed", { size: bytes(done.freedBytes) }), text: t("removed", { count: done.items.filter((one) => !one.refusal).length }) });
      onClose();
    } });
  }
  return (
    <Dialog isOpen title={t("cleanUp")} onClose={onClose} actions={
      <>
        <Button onClick={onClose}>{common("cancel")}</Button>
        <Button kind="danger" disabled={goes.length === 0 || apply.isPending} onClick={clean}>{apply.isPending ? t("removing") : t("remove", { size: bytes(goes.reduce((sum, one) => sum + one.bytes, 0)) })}</Button>
      </>
    }>
      <div className="space-y-3">
        <p>{t("cleanHow")}</p>
        {preview.error || apply.error ? <Problem problem={preview.error ?? apply.error} /> : null}
        {!found && !preview.error && <p role="status" className="min-h-24 text-soft">{common("loading")}</p>}
        {found && goes.length === 0 && <p className="font-semibold">{t("nothingToRemove")}</p>}
        <ul className="max-h-72 divide-y divide-line overflow-auto">
          {found?.items.map((one) => (
            <li key={`${one.target} ${one.what}`} className="py-1.5">
              <p className="flex flex-wrap justify-between gap-x-4"><span lang="en" className="min-w-0 break-all">{one.what}</span><span className="tabular-nums">{bytes(one.bytes)}</span></p>
              <p className="text-sm text-soft">{one.refusal ? t("stays", { why: one.refusal }) : t.of("target", one.target)}</p>
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  );
}
