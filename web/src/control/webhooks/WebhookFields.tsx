import { SelectField, TextField } from "@/design/Field";
import { useSourceChoices } from "@/control/sources/useSources";
import { EVENTS, isChosen, switched } from "./events";
import { t } from "@/language/control/webhooks";

export interface Draft {
  url: string;
  description: string;
  events: string[];
  sources: string[];
}

/** Where messages go, and about what. */
export function WebhookFields({ draft, onChange, urlProblem }: { draft: Draft; onChange: (draft: Draft) => void; urlProblem?: string | null }) {
  const sources = useSourceChoices();
  return (
    <div className="space-y-4">
      <TextField label={t("address")} type="url" value={draft.url} maxLength={2048} onChange={(event) => onChange({ ...draft, url: event.target.value })} placeholder="https://example.org/hook" hint={t("addressHow")} problem={urlProblem} />
      <TextField label={t("purpose")} value={draft.description} onChange={(event) => onChange({ ...draft, description: event.target.value })} />
      <fieldset>
        <legend className="mb-1 font-semibold">{t("events")}</legend>
        <p className="mb-2 text-sm text-soft">{t("eventsHow")}</p>
        <div className="grid gap-2 sm:grid-cols-2">
          {Object.entries(EVENTS).map(([group, words]) => (
            <div key={group} className="rounded-part border border-line p-2">
              <label className="flex min-h-6 items-center gap-2 font-semibold"><input type="checkbox" className="size-4 accent-accent" checked={isChosen(draft.events, group)} onChange={() => onChange({ ...draft, events: switched(draft.events, group) })} />{t("allOf", { group: t.of("group", group) })}</label>
              {words.length > 1 && words.map((word) => <label key={word} className="ml-6 flex min-h-6 items-center gap-2 text-sm"><input type="checkbox" className="size-4 accent-accent" checked={isChosen(draft.events, group, word)} onChange={() => onChange({ ...draft, events: switched(draft.events, group, word) })} />{t.of("word", word)}</label>)}
            </div>
          ))}
        </div>
      </fieldset>
      <SelectField label={t("ofSource")} value={draft.sources[0] ?? ""} onChange={(event) => onChange({ ...draft, sources: event.target.value ? [event.target.value] : [] })} hint={draft.sources.length > 1 ? t("nowSources", { names: draft.sources.join(", ") }) : undefined}>
        <option value="">{t("every")}</option>
        {sources?.map((one) => <option key={one.code} value={one.code}>{one.name}</option>)}
      </SelectField>
    </div>
  );
}
