import { useState } from "react";
import { Problem } from "@/app/Problem";
import { withParts } from "@/language/room";
import { toldEvents } from "./events";
import { Moment } from "@/control/live/Moment";
import { ShowMore } from "@/control/page/ShowMore";
import { Button } from "@/design/Button";
import { SelectField } from "@/design/Field";
import { Tag, type Tone } from "@/design/Tag";
import { useDeliveries, useRedeliver, type Delivery } from "./useWebhooks";
import { t } from "@/language/control/webhooks";

const TONES: Record<Delivery["state"], Tone> = { pending: "accent", delivered: "good", failed: "bad" };

/** Every message, what was answered, and the way to send it again. */
export function Deliveries({ id }: { id: number }) {
  const [state, setState] = useState<Delivery["state"] | undefined>();
  const list = useDeliveries(id, state);
  const again = useRedeliver(id);
  return (
    <>
      <div className="mb-3 max-w-48">
        <SelectField label={t("state")} value={state ?? ""} onChange={(event) => setState((event.target.value || undefined) as Delivery["state"] | undefined)}>
          <option value="">{t("every")}</option>
          {Object.keys(TONES).map((one) => <option key={one} value={one}>{t.of("state", one)}</option>)}
        </SelectField>
      </div>
      {list.error || again.error ? <Problem problem={list.error ?? again.error} onAgain={() => void list.refetch()} /> : null}
      {list.rows?.length === 0 && <p className="text-soft">{t("noMessages")}</p>}
      <ul className="min-h-16 divide-y divide-line">
        {list.rows?.map((one) => (
          <li key={one.id} className="py-2">
            <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
              <Tag tone={TONES[one.state]}>{t(`state.${one.state}`)}</Tag>
              <span className="font-semibold">{toldEvents([one.event])}</span>
              <Moment at={one.createdAt} />
              <span className="text-sm text-soft">{one.nextAt ? withParts(t("attemptsNext", { attempts: t("attempts", { count: one.attempts }) }), { time: <Moment at={one.nextAt} relative /> }) : t("attempts", { count: one.attempts })}</span>
              <span className="ml-auto"><Button disabled={again.isPending} onClick={() => again.mutate(one.id)}>{t("again")}</Button></span>
            </div>
            <details>
              <summary className="inline-block min-h-6 text-sm font-semibold text-accent">{t("sentAndAnswered")}</summary>
              <pre tabIndex={0} className="mt-1 max-h-48 overflow-auto rounded-part bg-sunk p-2 text-sm break-all whitespace-pre-wrap">{one.body}</pre>
              <ol className="mt-1 space-y-1 text-sm">
                {one.log.map((attempt, at) => (
                  <li key={at} className="break-words"><Moment at={attempt.at} />: {attempt.status ?? t("noAnswer")}, {attempt.tookMs} ms{attempt.error && <span lang="en">, {attempt.error}</span>}{attempt.answer && <code className="block break-all text-soft">{attempt.answer}</code>}</li>
                ))}
              </ol>
            </details>
          </li>
        ))}
      </ul>
      {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="message" />}
    </>
  );
}
