import { useState } from "react";
import { Confirm } from "@/control/page/Confirm";
import type { Deed } from "@/control/page/Done";
import { SelectField } from "@/design/Field";
import { useEditions, useEditionWork, type EditionDetail } from "./useEditions";
import { t } from "@/language/control/editions";

export type Asking = "report" | "freeze" | "verify" | "compare";

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
    onDone({ title: t("started", { what: t(`title.${asking}`) }), text: t("startedHow") });
  }
  return (
    <Confirm title={t(`title.${asking}`)} action={t("start")} isDanger={false} isComplete={asking !== "compare" || earlier !== undefined} onClose={onClose} onConfirm={start}>
      {asking === "report" && <p>{t("reportHow")}</p>}
      {asking === "freeze" && <p>{t("freezeHow")} {t(edition.frozenAt ? "freezeBefore" : "freezeLater")}</p>}
      {asking === "verify" && (
        <>
          <p>{t("verifyHow")}</p>
          <label className="flex min-h-6 items-start gap-2"><input type="checkbox" className="mt-1 size-4 accent-accent" checked={isQuick} onChange={(event) => setQuick(event.target.checked)} /><span>{t("quick")}</span></label>
        </>
      )}
      {asking === "compare" && (years.length === 0 ? <p>{t("noEarlier")}</p> : (
        <>
          <p>{t("compareHow")}</p>
          <SelectField label={t("withYear")} value={earlier} onChange={(event) => setYear(Number(event.target.value))}>{years.map((one) => <option key={one} value={one}>{one}</option>)}</SelectField>
        </>
      ))}
    </Confirm>
  );
}
