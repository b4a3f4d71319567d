import { useWords } from "@/language/LanguageContext";
import type { ReactNode } from "react";

/** A sheet on the paper: one subject, with its heading and what can be done with it. */
export function Card({ title, actions, children, className = "" }: { title?: ReactNode; actions?: ReactNode; children: ReactNode; className?: string }) {
  return (
    <section className={`rounded-card border border-line bg-sheet p-4 shadow-card sm:p-5 ${className}`}>
      {(title || actions) && (
        <header className="mb-3 flex flex-wrap items-baseline justify-between gap-2">
          {title && <h2 className="min-w-0 text-lg wrap-anywhere">{title}</h2>}
          {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

/** One number and what it counts. */
export function Figure({ label, value, note }: { label: ReactNode; value: ReactNode; note?: ReactNode }) {
  return (
    <div className="rounded-card border border-line bg-sheet px-4 py-3 shadow-card">
      <dt className="text-sm text-soft">{label}</dt>
      <dd className="font-serif text-2xl font-semibold tabular-nums">{value}</dd>
      {note && <dd className="text-sm text-soft">{note}</dd>}
    </div>
  );
}

/** Keeps the place of so many lines while they are loaded, and says so. */
export function Placeholder({ lines = 4 }: { lines?: number }) {
  const { t } = useWords();
  return (
    <div aria-busy className="space-y-3 py-1">
      <p className="sr-only">{t("app.loading")}</p>
      {Array.from({ length: lines }, (_, at) => <div key={at} aria-hidden className={`h-7 rounded-part bg-sunk ${at % 3 === 2 ? "w-2/3" : ""}`} />)}
    </div>
  );
}
