import { Link } from "@tanstack/react-router";
import { useWords } from "@/language/LanguageContext";
import type { AskedPage } from "./asked";
import { digits, weeksOf, type Day } from "./calendar";
import { Dot } from "./Dot";

const WEEK = ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-06", "2024-01-07"];

/** The twelve months of a year. A day with one capture opens it; a day with several lists them. */
export function Months({ year, days, asked, url }: { year: number; days: Map<string, Day>; asked: AskedPage; url: string }) {
  return (
    <div className="grid gap-x-8 gap-y-6 sm:grid-cols-2 lg:grid-cols-3 xl:grid-cols-4">
      {Array.from({ length: 12 }, (_, at) => <Month key={at} year={year} month={at + 1} days={days} asked={asked} url={url} />)}
    </div>
  );
}

function Month({ year, month, days, asked, url }: { year: number; month: number; days: Map<string, Day>; asked: AskedPage; url: string }) {
  const { date } = useWords();
  const prefix = `${year}-${String(month).padStart(2, "0")}`;
  // A phone has no room for months without anything.
  const isEmpty = ![...days.keys()].some((day) => day.startsWith(prefix));
  return (
    <table className={`${isEmpty ? "max-sm:hidden" : ""} w-full table-fixed border-collapse self-start text-center`}>
      <caption className="mb-1 text-left font-serif font-semibold first-letter:uppercase">{date(new Date(Date.UTC(year, month - 1, 1)), { dateStyle: undefined, month: "long" })}</caption>
      <thead>
        <tr>{WEEK.map((day) => <th key={day} scope="col" abbr={date(day, { dateStyle: undefined, weekday: "long" })} className="text-xs font-normal text-soft">{date(day, { dateStyle: undefined, weekday: "narrow" })}</th>)}</tr>
      </thead>
      <tbody>
        {weeksOf(year, month).map((week, at) => (
          <tr key={at}>{week.map((day, place) => <td key={place} className="h-12 p-0 align-top">{day && <Cell day={day} found={days.get(day)} asked={asked} url={url} />}</td>)}</tr>
        ))}
      </tbody>
    </table>
  );
}

function Cell({ day, found, asked, url }: { day: string; found: Day | undefined; asked: AskedPage; url: string }) {
  const { t, date } = useWords();
  if (!found) return <span className="block pt-0.5 text-xs text-soft tabular-nums">{Number(day.slice(8))}</span>;
  const told = [date(day, { dateStyle: "long" }), t("search.capturesOf", { count: found.captures }), t(`status.${found.status}`), found.changes > 0 ? t("page.changed") : ""].filter(Boolean).join(", ");
  const look = "inline-flex min-h-11 w-9 flex-col items-center gap-0.5 rounded-part pt-0.5 text-ink no-underline hover:bg-wash aria-[current]:bg-wash aria-[current]:outline-2 aria-[current]:outline-accent";
  const dot = <><span aria-hidden className="text-xs font-semibold tabular-nums">{Number(day.slice(8))}</span><Dot status={found.status} captures={found.captures} isChanged={found.changes > 0} /></>;
  if (found.captures === 1) return <Link to="/view/$timestamp" params={{ timestamp: digits(found.first.timestamp) }} search={{ url }} title={told} aria-label={told} className={look}>{dot}</Link>;
  return <Link to="/page" search={{ ...asked, day }} replace resetScroll={false} hash="day" title={told} aria-label={told} activeOptions={{ exact: true }} aria-current={asked.day === day ? "date" : undefined} className={look}>{dot}</Link>;
}
