import { Link } from "@tanstack/react-router";
import { useWords } from "@/language/LanguageContext";
import type { AskedPage } from "./asked";
import { yearsBetween } from "./calendar";
import { useYearAhead } from "./useHistory";

/** Captures of every year; the chosen one is marked, and each leads to its calendar. */
export function YearStrip({ years, year, asked }: { years: { year: number; captures: number }[]; year: number; asked: AskedPage }) {
  const { t } = useWords();
  const ahead = useYearAhead(asked.url);
  const all = yearsBetween(years);
  const most = Math.max(1, ...all.map((one) => one.captures));
  return (
    <nav aria-label={t("page.years")} className="overflow-x-auto">
      <ol className="flex min-w-full items-end gap-1">
        {all.map((one) => (
          <li key={one.year} className="min-w-14 flex-1">
            <Link to="/page" search={{ ...asked, year: one.year, day: undefined }} replace onPointerEnter={() => ahead(one.year)} onFocus={() => ahead(one.year)} activeOptions={{ exact: true }} aria-current={one.year === year ? "date" : undefined} aria-label={`${one.year}: ${t("search.capturesOf", { count: one.captures })}`} className="flex flex-col items-stretch rounded-part px-1 pt-1 text-center text-soft no-underline hover:bg-sunk aria-[current]:bg-wash aria-[current]:text-ink">
              <svg aria-hidden viewBox="0 0 1 40" preserveAspectRatio="none" className="h-10 w-full"><rect x="0" width="1" y={40 - barHeight(one.captures, most)} height={barHeight(one.captures, most)} className={one.year === year ? "fill-accent" : "fill-edge"} /></svg>
              <span className={`py-1 text-sm tabular-nums ${one.year === year ? "font-semibold underline decoration-2 underline-offset-4" : ""}`}>{one.year}</span>
            </Link>
          </li>
        ))}
      </ol>
    </nav>
  );
}

function barHeight(count: number, most: number): number {
  return count === 0 ? 0 : Math.max(2, (count / most) * 40);
}
