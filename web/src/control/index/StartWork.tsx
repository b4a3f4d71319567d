import { useState } from "react";
import { useSources } from "@/api/useArchive";
import { Confirm } from "@/control/page/Confirm";
import type { Deed } from "@/control/page/Done";
import { SelectField } from "@/design/Field";
import { useRebuildIndex, useRebuildSearch, useVerify } from "./useIndex";

export type Work = "verify" | "rebuild_index" | "rebuild_search";

const TITLES: Record<Work, string> = { verify: "Verify WARC files", rebuild_index: "Read WARC files again", rebuild_search: "Rebuild the search index" };
const SAYS: Record<Work, string> = {
  verify: "Each file is read and compared with the digests from its sealing. Nothing is changed; it may take hours of reading.",
  rebuild_index: "Captures and texts are read anew from the WARC files and keep their ids. Readers see what was there before until it is done.",
  rebuild_search: "The search index is made anew from the captures. Search answers from the old one until the new one is whole.",
};

/** Long work that is started here; its progress stands on the page and it can be cancelled. */
export function StartWork({ work, onClose, onDone }: { work: Work; onClose: () => void; onDone: (deed: Deed) => void }) {
  const sources = useSources();
  const [source, setSource] = useState("");
  const [isQuick, setQuick] = useState(false);
  const verify = useVerify();
  const index = useRebuildIndex();
  const search = useRebuildSearch();
  async function start() {
    if (work === "verify") await verify.mutateAsync({ quick: isQuick, ...(source ? { source } : {}) });
    else if (work === "rebuild_index") await index.mutateAsync(source || undefined);
    else await search.mutateAsync(undefined);
    onDone({ title: `${TITLES[work]}: begun`, text: "It goes on without this page; how far it is stands below." });
  }
  return (
    <Confirm title={TITLES[work]} action="Begin" isDanger={false} onClose={onClose} onConfirm={start}>
      <p>{SAYS[work]}</p>
      {work !== "rebuild_search" && (
        <SelectField label="Files of" value={source} onChange={(event) => setSource(event.target.value)}>
          <option value="">All sources</option>
          {sources.data?.map((one) => <option key={one.sourceCode} value={one.sourceCode}>{one.sourceName}</option>)}
        </SelectField>
      )}
      {work === "verify" && <label className="flex min-h-6 items-start gap-2"><input type="checkbox" className="mt-1 size-4 accent-accent" checked={isQuick} onChange={(event) => setQuick(event.target.checked)} /><span>Only look whether each file is there and has its size <span className="text-soft">(no byte is read)</span></span></label>}
    </Confirm>
  );
}
