import { useWords } from "@/language/LanguageContext";

/** A moment in UTC; the reader's own time stands in the title. */
export function Moment({ at, none = "never" }: { at: string | null | undefined; none?: string }) {
  const { date } = useWords();
  if (!at) return <span className="text-soft">{none}</span>;
  const local = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" }).format(new Date(at));
  return <time dateTime={at} title={local} className="whitespace-nowrap">{date(at, { dateStyle: "medium", timeStyle: "short" })} UTC</time>;
}
