import { useEffect, type ReactNode } from "react";
import { t } from "@/language/control/common";

/** The head of a page of the control room: what it is about, in a sentence, and what can be done here. */
export function PageHead({ title, children, actions, name }: { title: ReactNode; children?: ReactNode; actions?: ReactNode; name?: string }) {
  const written = name ?? (typeof title === "string" ? title : t("controlRoom"));
  useEffect(() => { document.title = `${written} · Holdfast`; }, [written]);
  return (
    <header className="mb-5 flex flex-wrap items-end justify-between gap-x-6 gap-y-3">
      <div className="min-w-0 max-w-3xl">
        <h1 className="text-2xl break-words">{title}</h1>
        {children && <p className="mt-1 text-soft">{children}</p>}
      </div>
      {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
    </header>
  );
}
