import { ago } from "../charts/format";
import { useNow } from "./useNow";

const UTC = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" });
const LOCAL = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

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
  const said = `${UTC.format(moment)} UTC`;
  return (
    <time dateTime={moment.toISOString()} title={`${relative ? `${said}, ` : ""}${LOCAL.format(moment)}`} className="tabular-nums">
      {relative ? <Age at={moment.getTime()} /> : said}
      {both && moment.getTimezoneOffset() !== 0 && <span className="text-soft"> ({LOCAL.format(moment)})</span>}
    </time>
  );
}

function Age({ at }: { at: number }) {
  return <>{ago(at, useNow())}</>;
}
