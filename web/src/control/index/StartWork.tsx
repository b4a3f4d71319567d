import { useState } from "react";
import { useSources } from "@/api/useArchive";
import { Confirm } from "@/control/page/Confirm";
import type { Deed } from "@/control/page/Done";
import { SelectField } from "@/design/Field";
import { useRebuildIndex, useRebuildSearch, useVerify } from "./useIndex";
import { t } from "@/language/control/index";

export type Work = "verify" | "rebuild_index" | "rebuild_search";

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
    onDone({ title: t("started", { what: t(`work.${work}`) }), text: t("startedHow") });
  }
  return (
    <Confirm title={t(`work.${work}`)} action={t("start")} isDanger={false} onClose={onClose} onConfirm={start}>
      <p>{t(`how.${work}`)}</p>
      {work !== "rebuild_search" && (
        <SelectField label={t("filesOf")} value={source} onChange={(event) => setSource(event.target.value)}>
          <option value="">{t("allSources")}</option>
          {sources.data?.map((one) => <option key={one.sourceCode} value={one.sourceCode}>{one.sourceName}</option>)}
        </SelectField>
      )}
      {work === "verify" && <label className="flex min-h-6 items-start gap-2"><input type="checkbox" className="mt-1 size-4 accent-accent" checked={isQuick} onChange={(event) => setQuick(event.target.checked)} /><span>{t("quick")} <span className="text-soft">{t("quickHow")}</span></span></label>}
    </Confirm>
  );
}
