import { useState } from "react";
import { Problem } from "@/app/Problem";
import { counted } from "@/control/charts/format";
import { Moment } from "@/control/live/Moment";
import { ShowMore } from "@/control/page/ShowMore";
import { Button } from "@/design/Button";
import { SelectField } from "@/design/Field";
import { Tag, type Tone } from "@/design/Tag";
import { useDeliveries, useRedeliver, type Delivery } from "./useWebhooks";

const TONES: Record<Delivery["state"], Tone> = { pending: "accent", delivered: "good", failed: "bad" };

/** Every message, what was answered, and the way to send it again. */
export function Deliveries({ id }: { id: number }) {
  const [state, setState] = useState<Delivery["state"] | undefined>();
  const list = useDeliveries(id, state);
  const again = useRedeliver(id);
  return (
    <>
      <div className="mb-3 max-w-48">
        <SelectField label="State" value={state ?? ""} onChange={(event) => setState((event.target.value || undefined) as Delivery["state"] | undefined)}>
          <option value="">All</option>
          {Object.keys(TONES).map((one) => <option key={one} value={one}>{one}</option>)}
        </SelectField>
      </div>
      {list.error || again.error ? <Problem problem={list.error ?? again.error} onAgain={() => void list.refetch()} /> : null}
      {list.rows?.length === 0 && <p className="text-soft">No message was sent yet. A test shows whether the address answers.</p>}
      <ul className="min-h-16 divide-y divide-line">
        {list.rows?.map((one) => (
          <li key={one.id} className="py-2">
            <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
              <Tag tone={TONES[one.state]}>{one.state}</Tag>
              <span className="font-semibold">{one.event}</span>
              <Moment at={one.createdAt} />
              <span className="text-sm text-soft">{counted(one.attempts, "attempt")}{one.nextAt && <>, next <Moment at={one.nextAt} relative /></>}</span>
              <span className="ml-auto"><Button disabled={again.isPending} onClick={() => again.mutate(one.id)}>Send again</Button></span>
            </div>
            <details>
              <summary className="inline-block min-h-6 text-sm font-semibold text-accent">What was sent and answered</summary>
              <pre tabIndex={0} className="mt-1 max-h-48 overflow-auto rounded-part bg-sunk p-2 text-sm break-all whitespace-pre-wrap">{one.body}</pre>
              <ol className="mt-1 space-y-1 text-sm">
                {one.log.map((attempt, at) => (
                  <li key={at} className="break-words"><Moment at={attempt.at} />: {attempt.status ?? "no answer"}, {attempt.tookMs} ms{attempt.error && `, ${attempt.error}`}{attempt.answer && <code className="block break-all text-soft">{attempt.answer}</code>}</li>
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
