import { SelectField, TextField } from "@/design/Field";
import { Check } from "../page/Check";
import { hasTime, MONTHS, UNITS, WEEKDAYS, zonesFor, type When } from "./schedule";

const OFTEN: Record<When["often"], string> = { once: "Only when I start it", daily: "Every day", weekly: "Every week", monthly: "Every month", yearly: "Every year", every: "Every few hours, days, weeks…" };

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
      <SelectField label="How often" value={often} problem={problem} onChange={(event) => {
        const chosen = event.target.value as When["often"];
        // A month and a year have no time without a day: those need one.
        onChange({ often: chosen, ...(when.at || chosen === "daily" || chosen === "weekly" || chosen === "every" ? {} : { at: "03:00" }) });
      }}>
        {Object.entries(OFTEN).map(([word, said]) => <option key={word} value={word}>{said}</option>)}
      </SelectField>
      {often === "weekly" && <Choice label="Day of the week" value={when.weekday} among={WEEKDAYS} onChange={(weekday) => onChange({ weekday })} />}
      {(often === "monthly" || often === "yearly") && <TextField label="Day of the month" type="number" min={1} max={31} value={when.day} onChange={(event) => onChange({ day: event.target.value })} hint={often === "monthly" ? "31 is the last day of shorter months." : undefined} />}
      {often === "yearly" && <Choice label="Month" value={when.month} among={MONTHS} onChange={(month) => onChange({ month })} />}
      {often === "every" && (
        <div className="grid grid-cols-2 gap-3">
          <TextField label="Number" type="number" min={1} value={when.every} onChange={(event) => onChange({ every: event.target.value })} />
          <Choice label="Unit" value={when.unit} among={UNITS} onChange={(unit) => onChange({ unit })} />
        </div>
      )}
      {hasTime(when) && (
        <div className="grid grid-cols-2 gap-3">
          <TextField label="Time of day" type="time" value={when.at} onChange={(event) => onChange({ at: event.target.value })} hint={often === "monthly" || often === "yearly" ? undefined : "Empty: the quietest time."} />
          <Choice label="Time zone" value={when.zone} among={zonesFor(when.zone)} onChange={(zone) => onChange({ zone })} />
        </div>
      )}
      {often === "every" && hasTime(when) && when.at && Number(when.every) > 1 && <TextField label="First day" type="date" value={when.from} onChange={(event) => onChange({ from: event.target.value })} hint="Empty: as soon as possible." />}
      {often !== "once" && (!hasTime(when) || !when.at) && <div className="sm:col-span-2"><Check label="Less often while its first page stays the same" value={when.adapts} onChange={(adapts) => onChange({ adapts })} /></div>}
    </div>
  );
}

function Choice({ label, value, among, onChange }: { label: string; value: string; among: string[]; onChange: (value: string) => void }) {
  return <SelectField label={label} value={value} onChange={(event) => onChange(event.target.value)}>{among.map((one) => <option key={one} value={one}>{one}</option>)}</SelectField>;
}
