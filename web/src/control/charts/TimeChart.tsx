import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { alone, aroundTimes, DASHES, momentLabels, sampledRows, type Line } from "./columns";
import { t } from "@/language/control/common";
import { spokenDate } from "@/language/spoken";

const STROKES = { accent: "stroke-accent", good: "stroke-good", warn: "stroke-warn", bad: "stroke-bad", ink: "stroke-ink" };
const WHOLE = [1, 2, 5].flatMap((first) => Array.from({ length: 10 }, (_, power) => first * 10 ** power)).sort((a, b) => a - b);
const HEIGHT = 180;
const ROWS = 24;
const MOMENT = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZone: "UTC" } as const;

interface Shown {
  title: string;
  /** What the lines mean, in a sentence, for who cannot see them too. */
  caption: string;
  /** Moments in seconds since 1970, rising. */
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  /** The largest value of the axis, where that is known: 1 for shares. */
  most?: number;
  /** Only whole numbers stand at the axis: of things that are counted. */
  isWhole?: boolean;
}

/** Values over time: a picture, the values under the pointer beside its legend, and the same as a table. */
export function TimeChart({ title, caption, times, lines, format, most, isWhole = false }: Shown) {
  const place = useRef<HTMLDivElement>(null);
  const [at, point] = useState<number | null>(null);
  const theme = useThemeCount();
  const labels = lines.map((line) => line.label).join("\n");
  const plot = useRef<uPlot | null>(null);
  const given = useRef({ times, lines, format, most });
  useEffect(() => { given.current = { times, lines, format, most }; });

  useEffect(() => {
    const box = place.current;
    if (!box) return undefined;
    const { lines: first, format: write, most: top } = given.current;
    const made = new uPlot(options(box, { lines: first, format: write, most: top, isWhole }, point), data(given.current.times, first), box);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: box.clientWidth, height: HEIGHT }));
    watch.observe(box);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
    // Made anew only if the lines are others or the colours are; new values are set below.
  }, [labels, theme, isWhole]);

  useEffect(() => { plot.current?.setData(data(times, lines)); }, [times, lines]);

  const shown = at ?? times.length - 1;
  return (
    <figure className="min-w-0">
      <figcaption className="mb-1">
        <span className="font-semibold">{title}</span>
        <span className="ml-2 text-sm text-soft">{caption}</span>
      </figcaption>
      <p className="mb-1 flex min-h-6 flex-wrap gap-x-4 text-sm">
        {lines.map((line, number) => (
          <span key={line.label} className="inline-flex items-center gap-1.5">
            <svg aria-hidden width="26" height="4" className={STROKES[line.tone ?? "accent"]}><line x1="0" x2="26" y1="2" y2="2" strokeWidth="2.5" strokeDasharray={DASHES[number % DASHES.length]?.join(" ")} /></svg>
            {line.label} <span className="font-semibold tabular-nums">{told(line.values[shown], format)}</span>
          </span>
        ))}
        <span className="ml-auto text-soft tabular-nums">{times[shown] === undefined ? "" : `${when(times[shown])} UTC`}</span>
      </p>
      <div ref={place} aria-hidden className="h-[180px] w-full overflow-hidden" />
      <details className="mt-1 text-sm">
        <summary className="inline-block min-h-6 text-soft underline">{t("tableOf", { title })}</summary>
        <div tabIndex={0} role="region" aria-label={t("tableOf", { title })} className="mt-1 max-h-64 overflow-auto rounded-part border border-line">
          <table className="w-full border-collapse">
            <thead><tr>{[t("time"), ...lines.map((line) => line.label)].map((head) => <th key={head} scope="col" className="border-b border-edge px-2 py-1 text-left">{head}</th>)}</tr></thead>
            <tbody>
              {sampledRows(times.length, ROWS).reverse().map((row) => (
                <tr key={row} className="border-b border-line">
                  <th scope="row" className="px-2 py-1 text-left font-normal tabular-nums">{when(times[row] ?? 0)}</th>
                  {lines.map((line) => <td key={line.label} className="px-2 py-1 tabular-nums">{told(line.values[row], format)}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

function when(seconds: number): string {
  return spokenDate(new Date(seconds * 1000), MOMENT);
}

function told(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "–" : format(value);
}

function data(times: number[], lines: Line[]): uPlot.AlignedData {
  return [times, ...lines.map((line) => line.values.slice(0, times.length))] as uPlot.AlignedData;
}

function options(box: HTMLElement, { lines, format, most, isWhole }: Pick<Shown, "lines" | "format" | "most" | "isWhole">, point: (at: number | null) => void): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (token: string) => style.getPropertyValue(`--${token}`).trim();
  const axis: uPlot.Axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: `12px ${style.getPropertyValue("--font-sans")}` };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: { x: { range: ({ data: [times] }) => aroundTimes(times) }, y: { range: (_, __, high) => [0, most ?? (high > 0 ? high * 1.1 : 1)] } },
    axes: [{ ...axis, space: 70, values: (_, ticks) => momentLabels(ticks) }, { ...axis, size: 64, ...(isWhole ? { incrs: WHOLE } : {}), values: (_, ticks) => ticks.map((tick) => format(tick)) }],
    series: [{}, ...lines.map((line, at): uPlot.Series => ({ label: line.label, stroke: colour(line.tone ?? "accent"), width: 2, dash: [...(DASHES[at % DASHES.length] ?? [])], points: { show: true, size: 5, filter: () => alone(line.values) } }))],
    hooks: { setCursor: [(made) => point(made.cursor.idx ?? null)] },
  };
}

/** Counts the changes of the appearance: a canvas takes its colours when it is drawn. */
function useThemeCount(): number {
  const [times, change] = useState(0);
  useEffect(() => {
    const next = () => change((before) => before + 1);
    const watch = new MutationObserver(next);
    watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", next);
    return () => {
      watch.disconnect();
      dark.removeEventListener("change", next);
    };
  }, []);
  return times;
}
