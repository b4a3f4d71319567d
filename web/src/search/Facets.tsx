import { useState } from "react";
import { useWords } from "@/language/LanguageContext";
import { FILTERS, isYear, yearSpan, type Asked } from "./asked";
import { shownLanguage } from "./Result";
import type { SearchResults } from "./useSearch";

const FEW = 6;

type Values = SearchResults["facets"]["host"];

/** Whether there is anything to choose: a facet of one value narrows nothing down. */
export function hasFacets(found: SearchResults, asked: Asked): boolean {
  return found.facets.year.length > 1 || FILTERS.some((filter) => found.facets[filter].length > 1 || asked[filter]);
}

/** A value as its facet names it; as it was asked for where no result has it. */
export function shownValue(found: SearchResults, filter: (typeof FILTERS)[number], value: string, language: string): string {
  return filter === "language" ? shownLanguage(language, value) : found.facets[filter].find((one) => one.value === value)?.label ?? value;
}

/** What the results can be narrowed down by, with how many would be left. */
export function Facets({ found, asked, onChange }: { found: SearchResults; asked: Asked; onChange: (change: Partial<Asked>) => void }) {
  const { language } = useWords();
  const languages = found.facets.language.map((one) => ({ ...one, label: shownLanguage(language, one.value) }));
  return (
    <div className="space-y-5">
      <Facet name="year" isExact={found.totalIsExact} values={[...found.facets.year].sort((one, other) => other.value.localeCompare(one.value))} isChosen={(value) => isYear(asked, value)} onPick={(value, isChosen) => onChange(isChosen ? { from: undefined, to: undefined } : yearSpan(value))} />
      {FILTERS.map((filter) => <Facet key={filter} name={filter} isExact={found.totalIsExact} values={filter === "language" ? languages : found.facets[filter]} isChosen={(value) => asked[filter] === value} onPick={(value, isChosen) => onChange({ [filter]: isChosen ? undefined : value })} />)}
    </div>
  );
}

function Facet({ name, isExact, values, isChosen, onPick }: { name: "year" | (typeof FILTERS)[number]; isExact: boolean; values: Values; isChosen: (value: string) => boolean; onPick: (value: string, isChosen: boolean) => void }) {
  const { t, number } = useWords();
  const [isWhole, showWhole] = useState(false);
  if (values.length === 0 || (values.length === 1 && !values.some((one) => isChosen(one.value)))) return null;
  const shown = isWhole ? values : values.slice(0, FEW);
  return (
    <fieldset className="min-w-0">
      <legend className="mb-1 text-sm font-semibold text-soft">{t(`facet.${name}`)}</legend>
      <ul>
        {shown.map((one) => (
          <li key={one.value}>
            <button type="button" aria-pressed={isChosen(one.value)} onClick={() => onPick(one.value, isChosen(one.value))} className="flex min-h-8 w-full items-baseline justify-between gap-3 rounded-part px-2 py-1 text-left hover:bg-sunk aria-pressed:bg-wash aria-pressed:font-semibold">
              <span className="min-w-0 wrap-anywhere">{one.label}</span>
              <span className="shrink-0 text-sm text-soft tabular-nums">{isExact ? number(one.count) : t("search.countAtLeast", { count: one.count })}</span>
            </button>
          </li>
        ))}
      </ul>
      {values.length > FEW && !isWhole && (
        <button type="button" onClick={() => showWhole(true)} className="px-2 py-1 text-sm text-accent underline">{t("search.more", { count: values.length - FEW })}</button>
      )}
    </fieldset>
  );
}
