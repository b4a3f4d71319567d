import { useState } from "react";
import { useWords } from "@/language/LanguageContext";
import { FILTERS, type Asked, type Filter } from "./asked";
import type { SearchResults } from "./useSearch";

const FEW = 6;

/** What the results can be narrowed down by, with how many would be left. */
export function Facets({ found, asked, onChange }: { found: SearchResults; asked: Asked; onChange: (change: Partial<Asked>) => void }) {
  return (
    <div className="space-y-5">
      {FILTERS.map((filter) => <Facet key={filter} filter={filter} values={found.facets[filter]} chosen={asked[filter]} onChange={onChange} />)}
    </div>
  );
}

function Facet({ filter, values, chosen, onChange }: { filter: Filter; values: SearchResults["facets"]["host"]; chosen: string | undefined; onChange: (change: Partial<Asked>) => void }) {
  const { t, number } = useWords();
  const [isWhole, showWhole] = useState(false);
  if (values.length === 0 || (values.length === 1 && !chosen)) return null;
  const shown = isWhole ? values : values.slice(0, FEW);
  return (
    <fieldset>
      <legend className="mb-1 text-sm font-semibold text-soft">{t(`facet.${filter}`)}</legend>
      <ul>
        {shown.map((one) => (
          <li key={one.value}>
            <button type="button" aria-pressed={chosen === one.value} onClick={() => onChange({ [filter]: chosen === one.value ? undefined : one.value })} className="flex min-h-8 w-full items-baseline justify-between gap-3 rounded-part px-2 py-1 text-left hover:bg-sunk aria-pressed:bg-wash aria-pressed:font-semibold">
              <span className="min-w-0 break-words">{one.label}</span>
              <span className="text-sm text-soft tabular-nums">{number(one.count)}</span>
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
