import { SelectField, TextField } from "@/design/Field";
import { Check } from "../page/Check";
import { calendarName, hasTime, MONTHS, UNITS, WEEKDAYS, zonesFor, type When } from "./schedule";
import { t } from "@/language/control/sources";

const OFTEN: When["often"][] = ["once", "daily", "weekly", "monthly", "yearly", "every"];

interface Shown {
  when: When;
  onChange: (change: Partial<When>) => void;
  problem: string | null;
}

/** When a source is crawled, asked in plain words; a time that is left empty is chosen by the scheduler. */
export function ScheduleFields({ when, onChange, problem }: Shown) {
  const { often } = when;
  return (
    <div className="grid items-start gap-4 sm:grid-cols-2">
      <SelectField label={t("often")} value={often} problem={problem} onChange={(event) => {
        const chosen = event.target.value as When["often"];
        // A month and a year have no time without a day: those need one.
        onChange({ often: chosen, ...(when.at || chosen === "daily" || chosen === "weekly" || chosen === "every" ? {} : { at: "03:00" }) });
      }}>
        {OFTEN.map((word) => <option key={word} value={word}>{t(`often.${word}`)}</option>)}
      </SelectField>
      {often === "weekly" && <Choice label={t("weekday")} value={when.weekday} among={WEEKDAYS} word={(one) => calendarName("weekday", WEEKDAYS.indexOf(one))} onChange={(weekday) => onChange({ weekday })} />}
      {(often === "monthly" || often === "yearly") && <TextField label={t("day")} type="number" min={1} max={31} value={when.day} onChange={(event) => onChange({ day: event.target.value })} hint={often === "monthly" ? t("dayHint") : undefined} />}
      {often === "yearly" && <Choice label={t("month")} value={when.month} among={MONTHS} word={(one) => calendarName("month", MONTHS.indexOf(one))} onChange={(month) => onChange({ month })} />}
      {often === "every" && (
        <div className="grid grid-cols-2 gap-3">
          <TextField label={t("number")} type="number" min={1} value={when.every} onChange={(event) => onChange({ every: event.target.value })} />
          <Choice label={t("unit")} value={when.unit} among={UNITS} word={(one) => t.of("unit", one)} onChange={(unit) => onChange({ unit })} />
        </div>
      )}
      {hasTime(when) && (
        <div className="grid grid-cols-2 gap-3">
          <TextField label={t("time")} type="time" value={when.at} onChange={(event) => onChange({ at: event.target.value })} hint={often === "monthly" || often === "yearly" ? undefined : t("timeHint")} />
          <Choice label={t("zone")} value={when.zone} among={zonesFor(when.zone)} onChange={(zone) => onChange({ zone })} />
        </div>
      )}
      {often === "every" && hasTime(when) && when.at && Number(when.every) > 1 && <TextField label={t("from")} type="date" value={when.from} onChange={(event) => onChange({ from: event.target.value })} hint={t("fromHint")} />}
      {often !== "once" && (!hasTime(when) || !when.at) && <div className="sm:col-span-2"><Check label={t("adapts")} value={when.adapts} onChange={(adapts) => onChange({ adapts })} /></div>}
    </div>
  );
}

function Choice({ label, value, among, word = String, onChange }: { label: string; value: string; among: string[]; word?: (one: string) => string; onChange: (value: string) => void }) {
  return <SelectField label={label} value={value} onChange={(event) => onChange(event.target.value)}>{among.map((one) => <option key={one} value={one}>{word(one)}</option>)}</SelectField>;
}
