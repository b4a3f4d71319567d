import { useState } from "react";
import { Problem } from "@/app/Problem";
import { refusedAt } from "@/control/page/refused";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { SelectField, TextArea } from "@/design/Field";
import { Check } from "@/control/page/Check";
import { useSourceChoices } from "@/control/sources/useSources";
import { pasted } from "./asked";
import { useAddUrls, type AddReceipt } from "./useFrontier";
import { t } from "@/language/control/frontier";



/** Say where addresses went. */
export function toldOf(receipt: AddReceipt): string {
  return receipt.places.map((place) => t("place", { urls: t("addressCount", { count: place.urls }), source: place.sourceCode, count: place.added, became: t(`became.${place.status}`) })).join("; ");
}

/** Addresses are pasted and added to the crawl of their source. */
export function AddUrls({ onClose, onDone }: { onClose: () => void; onDone: (receipt: AddReceipt) => void }) {
  const [written, write] = useState("");
  const [source, setSource] = useState("");
  const [isSeed, setSeed] = useState(false);
  const sources = useSourceChoices();
  const add = useAddUrls();
  const urls = pasted(written);
  const refused = refusedAt(add.error, "urls");
  function go() {
    add.mutate({ urls, source: source || undefined, isSeed }, { onSuccess: (receipt) => { onDone(receipt); onClose(); } });
  }
  return (
    <Dialog isOpen onClose={onClose} title={t("add")} actions={
      <>
        <Button onClick={onClose}>{t("cancel")}</Button>
        <Button kind="main" disabled={add.isPending || (urls.length === 0 && !(isSeed && source))} onClick={go}>
          {add.isPending ? t("adding") : urls.length ? t("addCount", { count: urls.length }) : t(isSeed && source ? "addSeeds" : "addNone")}
        </Button>
      </>
    }>
      <div className="space-y-4">
        <p>{t("addHow")}</p>
        <TextArea label={t("addresses")} rows={6} value={written} onChange={(event) => write(event.target.value)} spellCheck={false} className="font-mono text-sm" hint={t("addressesHint")} problem={refused} />
        <SelectField label={t("source")} value={source} onChange={(event) => setSource(event.target.value)}>
          <option value="">{t("byScope")}</option>
          {sources?.map((one) => <option key={one.code} value={one.code}>{one.name}</option>)}
        </SelectField>
        <Check label={t("asSeeds")} value={isSeed} onChange={setSeed} />
        {add.error && !refused ? <Problem problem={add.error} /> : null}
      </div>
    </Dialog>
  );
}
