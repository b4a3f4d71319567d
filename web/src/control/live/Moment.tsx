import { spokenDate } from "@/language/spoken";
import { ago } from "../charts/format";
import { useNow } from "./useNow";

const UTC: Intl.DateTimeFormatOptions = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" };
const LOCAL: Intl.DateTimeFormatOptions = { dateStyle: "medium", timeStyle: "long" };

interface Shown {
  at: string | null | undefined;
  /** How long ago, or in how long, instead of the date. */
  relative?: boolean;
  none?: string;
  /** The reader's own time beside it, where that is not UTC. */
  both?: boolean;
}

/** A moment in UTC, with the reader's own time when pointed at. */
export function Moment({ at, relative = false, none = "–", both = false }: Shown) {
  const moment = at ? new Date(at) : null;
  if (!moment || Number.isNaN(moment.getTime())) return <>{none}</>;
  const said = `${spokenDate(moment, UTC)} UTC`;
  const local = spokenDate(moment, LOCAL);
  return (
    <time dateTime={moment.toISOString()} title={`${relative ? `${said}, ` : ""}${local}`} className="tabular-nums">
      {relative ? <Age at={moment.getTime()} /> : said}
      {both && moment.getTimezoneOffset() !== 0 && <span className="text-soft"> ({local})</span>}
    </time>
  );
}

function Age({ at }: { at: number }) {
  return <>{ago(at, useNow())}</>;
}
