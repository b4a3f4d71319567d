import { Download } from "lucide-react";
import { useWords } from "@/language/LanguageContext";
import { buttonClass } from "@/design/Button";
import { exportPath, FORMS, type Asked } from "./asked";

/** The results to take away: as a table, as lines, or with their records. */
export function Export({ asked }: { asked: Asked }) {
  const { t } = useWords();
  return (
    <details className="relative" onKeyDown={(event) => { if (event.key === "Escape") event.currentTarget.open = false; }}>
      <summary className={buttonClass("plain", "list-none text-sm font-normal")}><Download aria-hidden className="size-4" />{t("search.export")}</summary>
      <div className="absolute right-0 z-20 mt-1 w-60 rounded-card border border-line bg-sheet p-2 shadow-card">
        <ul>{FORMS.map((form) => <li key={form}><a href={exportPath(asked, form)} download className="block rounded-part px-3 py-2 text-ink no-underline hover:bg-sunk">{t(`search.export.${form}`)}</a></li>)}</ul>
        <p className="px-3 py-1 text-sm text-soft">{t("search.exportHint")}</p>
      </div>
    </details>
  );
}
