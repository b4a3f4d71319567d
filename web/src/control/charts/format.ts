import { t } from "@/language/control/common";
import { spoken } from "@/language/spoken";
import { writtenNumber } from "@/language/words";

const UNITS = { en: ["B", "KB", "MB", "GB", "TB", "PB"], fr: ["o", "Ko", "Mo", "Go", "To", "Po"] } as const;

/** A number with one decimal, as the language writes it. */
function decimal(value: number): string {
  return spoken.language === "fr" ? value.toFixed(1).replace(".", ",") : value.toFixed(1);
}

export function count(value: number): string {
  return writtenNumber(spoken.language, value);
}

/** 1,234,567 bytes as "1.2 MB": powers of ten, as disks are sold and operators read them. */
export function bytes(value: number): string {
  let shown = value;
  let unit = 0;
  while (Math.abs(shown) >= 999.5 && unit < UNITS.en.length - 1) {
    shown /= 1000;
    unit += 1;
  }
  return `${unit === 0 || Math.abs(shown) >= 99.95 ? Math.round(shown) : decimal(shown)} ${UNITS[spoken.language][unit]}`;
}

/** A share of one as a percentage; what is nearly all is never called all of it. */
export function share(value: number): string {
  const percent = value * 100;
  if (percent > 99.9 && percent < 100) return `${decimal(99.9)} %`;
  return `${percent >= 99.95 || Number.isInteger(percent) ? Math.round(percent) : decimal(percent)} %`;
}

/** Seconds as the two largest units: "3 h 20 min", "45 s". */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return seconds < 10 && seconds % 1 >= 0.05 ? `${decimal(seconds)} s` : `${whole} s`;
  const parts: [number, string][] = [[Math.floor(whole / 86_400), t("days")], [Math.floor((whole % 86_400) / 3600), "h"], [Math.floor((whole % 3600) / 60), "min"], [whole % 60, "s"]];
  const first = parts.findIndex(([value]) => value > 0);
  return parts.slice(first, first + 2).filter(([value]) => value > 0).map(([value, unit]) => `${value} ${unit}`).join(" ");
}

/** How long ago, or in how long. */
export function ago(moment: number, now: number): string {
  const seconds = (now - moment) / 1000;
  if (Math.abs(seconds) < 2) return t("now");
  return seconds > 0 ? t("ago", { time: duration(Math.round(seconds)) }) : t("in", { time: duration(Math.round(-seconds)) });
}

/** "1 page", "2 pages": for pages that speak English only. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A rate: one decimal below ten, none above. */
export function rate(value: number): string {
  return value >= 10 ? count(Math.round(value)) : decimal(value);
}
