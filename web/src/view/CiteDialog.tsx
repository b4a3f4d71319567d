import { CopyButton } from "@/app/CopyButton";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { useWords } from "@/language/LanguageContext";
import { apa, bibtex } from "./cite";
import type { CaptureView } from "./useCapture";

/** How to refer to a capture so that it is found again. */
export function CiteDialog({ view, onClose }: { view: CaptureView; onClose: () => void }) {
  const { t } = useWords();
  return (
    <Dialog isOpen onClose={onClose} title={t("view.cite")} actions={<Button onClick={onClose}>{t("app.close")}</Button>}>
      <div className="space-y-4">
        <Kept name={t("cite.permalink")} text={view.permalink} />
        <Kept name="APA" text={apa(view, new Date())} />
        <Kept name="BibTeX" text={bibtex(view)} isCode />
        <Kept name={t("cite.record")} text={view.recordId ?? "–"} isCode />
        <Kept name={t("cite.digest")} text={view.digest ?? "–"} isCode />
        <Kept name={t("cite.file")} text={`${view.warcFile}, ${t("cite.offset", { offset: String(view.warcOffset) })}`} isCode />
      </div>
    </Dialog>
  );
}

function Kept({ name, text, isCode = false }: { name: string; text: string; isCode?: boolean }) {
  const { t } = useWords();
  return (
    <section>
      <div className="mb-1 flex items-center justify-between gap-2">
        <h3 className="font-sans text-sm font-semibold">{name}</h3>
        <CopyButton kind="bare" className="min-h-7 px-2 py-0 text-sm" label={t("cite.copy")} name={name} text={() => text} />
      </div>
      <p className={`rounded-part bg-sunk p-2 [overflow-wrap:anywhere] whitespace-pre-wrap ${isCode ? "font-mono text-xs" : "text-sm"}`}>{text}</p>
    </section>
  );
}
