import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import type { Deed } from "@/control/page/Done";
import { bytes, counted } from "@/control/charts/format";
import { plain } from "@/control/page/words";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { useCleanup } from "./useStorage";

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
      onDone({ title: `${bytes(done.freedBytes)} are free again`, text: `${counted(done.items.filter((one) => !one.refusal).length, "thing")} removed; all of it is made anew when it is needed.` });
      onClose();
    } });
  }
  return (
    <Dialog isOpen title="Clean up" onClose={onClose} actions={
      <>
        <Button onClick={onClose}>Keep all</Button>
        <Button kind="danger" disabled={goes.length === 0 || apply.isPending} onClick={clean}>{apply.isPending ? "Removing…" : `Remove ${bytes(goes.reduce((sum, one) => sum + one.bytes, 0))}`}</Button>
      </>
    }>
      <div className="space-y-3">
        <p>Packages that can be made anew, and what crawl tools left behind. No capture goes.</p>
        {preview.error || apply.error ? <Problem problem={preview.error ?? apply.error} /> : null}
        {!found && !preview.error && <p role="status" className="min-h-24 text-soft">Looking what may go…</p>}
        {found && goes.length === 0 && <p className="font-semibold">There is nothing to remove.</p>}
        <ul className="max-h-72 divide-y divide-line overflow-auto">
          {found?.items.map((one) => (
            <li key={`${one.target} ${one.what}`} className="py-1.5">
              <p className="flex flex-wrap justify-between gap-x-4"><span className="min-w-0 break-all">{one.what}</span><span className="tabular-nums">{bytes(one.bytes)}</span></p>
              <p className="text-sm text-soft">{one.refusal ? `Stays: ${one.refusal}` : plain(one.target)}</p>
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  );
}
