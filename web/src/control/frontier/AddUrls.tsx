import { useState } from "react";
import { Problem } from "@/app/Problem";
import { counted } from "@/control/charts/format";
import { refusedAt } from "@/control/page/refused";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { SelectField, TextArea } from "@/design/Field";
import { Check } from "@/control/page/Check";
import { useSourceChoices } from "@/control/sources/useSources";
import { pasted } from "./asked";
import { useAddUrls, type AddReceipt } from "./useFrontier";

const BECAME = { joined: "joined the run that is under way", waits: "wait for the next run", job_made: "get a job of their own" };

/** Say where addresses went. */
export function toldOf(receipt: AddReceipt): string {
  return receipt.places.map((place) => `${counted(place.urls, "address", "addresses")} of ${place.sourceCode}: ${place.added} new, ${BECAME[place.status]}`).join("; ");
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
    <Dialog isOpen onClose={onClose} title="Add addresses" actions={
      <>
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="main" disabled={add.isPending || (urls.length === 0 && !(isSeed && source))} onClick={go}>
          {add.isPending ? "Adding…" : urls.length ? `Add ${counted(urls.length, "address", "addresses")}` : isSeed && source ? "Add the source's own seeds" : "Add"}
        </Button>
      </>
    }>
      <div className="space-y-4">
        <p>They join the run of their source that is under way, else its next run. If no source has them in scope, they get a source and a job of their own.</p>
        <TextArea label="Addresses" rows={6} value={written} onChange={(event) => write(event.target.value)} spellCheck={false} className="font-mono text-sm" hint="One on each line. All are checked before any is added." problem={refused} />
        <SelectField label="Source" value={source} onChange={(event) => setSource(event.target.value)}>
          <option value="">Found by its scope</option>
          {sources?.map((one) => <option key={one.code} value={one.code}>{one.name}</option>)}
        </SelectField>
        <Check label="As seeds: request them first, and follow their links" value={isSeed} onChange={setSeed} />
        {add.error && !refused ? <Problem problem={add.error} /> : null}
      </div>
    </Dialog>
  );
}
