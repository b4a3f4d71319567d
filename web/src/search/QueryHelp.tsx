import { useQuery } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { Problem } from "@/app/Problem";
import { frSyntax } from "@/language/frSyntax";
import { useWords } from "@/language/LanguageContext";

/** GET /api/search/syntax */
function useSyntax(isOpen: boolean) {
  return useQuery({ queryKey: ["syntax"], enabled: isOpen, staleTime: Infinity, queryFn: () => body<components["schemas"]["SearchSyntax"]>(api.GET("/api/search/syntax")) });
}

/** The query language, as the server tells it; an example that is clicked goes into the box. */
export function QueryHelp({ isOpen, onToggle, onInsert }: { isOpen: boolean; onToggle: (isOpen: boolean) => void; onInsert: (text: string) => void }) {
  const { t } = useWords();
  const { data, error, refetch } = useSyntax(isOpen);
  return (
    <details open={isOpen} onToggle={(event) => onToggle(event.currentTarget.open)} className="mt-2">
      <summary className="w-fit text-sm text-accent underline">{t("search.help")}</summary>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {data && (
        <div className="mt-2 rounded-card border border-line bg-sheet p-4">
        <p className="mb-3 flex flex-wrap gap-x-4 gap-y-2 text-sm">
          {data.words.map((one) => <span key={one.example}><button type="button" onClick={() => onInsert(one.example)} className="rounded-part border border-line bg-sunk px-2 py-0.5 font-mono hover:border-accent">{one.example}</button> <Meaning name={one.example} said={one.meaning} /></span>)}
        </p>
        <dl className="grid gap-x-6 gap-y-3 text-sm sm:grid-cols-2">
          {data.operators.map((one) => (
            <div key={one.name}>
              <dt className="font-mono font-semibold">{one.name}:{one.value}</dt>
              <dd><Meaning name={one.name} said={one.meaning} /></dd>
              <dd className="flex flex-wrap gap-2 pt-1">
                {one.examples.map((example) => (
                  <button key={example} type="button" onClick={() => onInsert(example)} className="rounded-part border border-line bg-sunk px-2 py-0.5 font-mono hover:border-accent">{example}</button>
                ))}
              </dd>
            </div>
          ))}
        </dl>
        </div>
      )}
    </details>
  );
}

/** What an operator means, in the reader's language where it is known; what stands between backticks is typed as it is. */
function Meaning({ name, said }: { name: string; said: string }) {
  const { language } = useWords();
  const french = language === "fr" ? frSyntax[name] : undefined;
  return <span lang={french ? "fr" : "en"} className="text-soft">{(french ?? said).split("`").map((part, place) => (place % 2 ? <code key={place}>{part}</code> : part))}</span>;
}
