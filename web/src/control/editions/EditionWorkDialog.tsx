import { useState } from "react";
import { Confirm } from "@/control/page/Confirm";
import type { Deed } from "@/control/page/Done";
import { SelectField } from "@/design/Field";
import { useEditions, useEditionWork, type EditionDetail } from "./useEditions";

export type Asking = "report" | "freeze" | "verify" | "compare";

const TITLES: Record<Asking, string> = { report: "Write the report", freeze: "Freeze the edition", verify: "Verify the frozen edition", compare: "Compare with another year" };

/** Long work on an edition, with what it does before it begins. */
export function EditionWorkDialog({ asking, edition, onClose, onDone }: { asking: Asking; edition: EditionDetail; onClose: () => void; onDone: (deed: Deed) => void }) {
  const work = useEditionWork(edition.editionId);
  const others = useEditions({ source: edition.sourceCode });
  const years = others.data?.items.map((one) => one.year).filter((year) => year < edition.year) ?? [];
  const [year, setYear] = useState<number | null>(null);
  const [isQuick, setQuick] = useState(false);
  const earlier = year ?? years[0];
  async function start() {
    if (asking === "report") await work.mutateAsync({ kind: "report" });
    else if (asking === "freeze") await work.mutateAsync({ kind: "freeze", again: edition.frozenAt !== null });
    else if (asking === "verify") await work.mutateAsync({ kind: "verify", quick: isQuick });
    else if (earlier !== undefined) await work.mutateAsync({ kind: "compare", earlierYear: earlier });
    onDone({ title: `${TITLES[asking]}: begun`, text: "How far it is stands at the end of this page." });
  }
  return (
    <Confirm title={TITLES[asking]} action="Begin" isDanger={false} isComplete={asking !== "compare" || earlier !== undefined} onClose={onClose} onConfirm={start}>
      {asking === "report" && <p>Every intended address is accounted for: ledger, manifest and coverage are written anew and take the place of the last report.</p>}
      {asking === "freeze" && <p>A list of all captures with their digests is written; the digest of that list is what a citation names. {edition.frozenAt ? "The earlier list is kept, but citations from now on name the new one." : "Later captures do not join it."}</p>}
      {asking === "verify" && (
        <>
          <p>Whether the archive still holds every capture of the frozen list, unchanged.</p>
          <label className="flex min-h-6 items-start gap-2"><input type="checkbox" className="mt-1 size-4 accent-accent" checked={isQuick} onChange={(event) => setQuick(event.target.checked)} /><span>Look at the sizes of WARC files only, do not read them</span></label>
        </>
      )}
      {asking === "compare" && (years.length === 0 ? <p>There is no earlier edition of this source to compare with.</p> : (
        <>
          <p>New, gone, changed, unchanged and moved pages between two years; the list is written as a file beside the edition.</p>
          <SelectField label="With the year" value={earlier} onChange={(event) => setYear(Number(event.target.value))}>{years.map((one) => <option key={one} value={one}>{one}</option>)}</SelectField>
        </>
      ))}
    </Confirm>
  );
}
