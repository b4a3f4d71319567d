import { Button } from "@/design/Button";
import { t } from "@/language/control/common";

/** Forth and back through a list that is counted. */
export function Pager({ page, size, total, label, onPage }: { page: number; size: number; total: number; label: string; onPage: (page: number) => void }) {
  const last = Math.max(1, Math.ceil(total / size));
  if (last === 1 && page === 1) return null;
  return (
    <nav aria-label={label} className="mt-4 flex flex-wrap items-center justify-center gap-3">
      <Button disabled={page <= 1} onClick={() => onPage(page - 1)}>{t("back")}</Button>
      <span className="tabular-nums">{t("pageOf", { page, last })}</span>
      <Button disabled={page >= last} onClick={() => onPage(page + 1)}>{t("next")}</Button>
    </nav>
  );
}
