import { useState } from "react";
import { Problem } from "@/app/Problem";
import type { Deed } from "@/control/page/Done";
import { refusedAt } from "@/control/page/refused";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { SelectField, TextField } from "@/design/Field";
import { useDomainSettings, type DomainDetail, type DomainSettings } from "./useDomains";

type Standing = "crawled" | "paused" | "forbidden";

/** Read the delay as it is typed: empty leaves it to the source; undefined cannot be one. */
export function readDelay(written: string): number | null | undefined {
  if (!written.trim()) return null;
  const seconds = Number(written.replace(",", "."));
  return Number.isFinite(seconds) && seconds >= 1 && seconds <= 86_400 ? seconds : undefined;
}

/** What operators set for a domain; a crawl that runs obeys within a second or two. */
export function SettingsCard({ found, onDone }: { found: DomainDetail; onDone: (deed: Deed) => void }) {
  const save = useDomainSettings(found.domain);
  const before: Standing = !found.isAllowed ? "forbidden" : found.paused ? "paused" : "crawled";
  const [delay, setDelay] = useState(found.crawlDelay?.toString() ?? "");
  const [standing, setStanding] = useState<Standing>(before);
  const seconds = readDelay(delay);
  const isChanged = standing !== before || (seconds !== undefined && seconds !== found.crawlDelay);
  const refused = refusedAt(save.error, "crawlDelay");
  async function go() {
    const was: DomainSettings = { crawlDelay: found.crawlDelay, isAllowed: found.isAllowed, paused: found.paused };
    const form: DomainSettings = { crawlDelay: seconds ?? null, isAllowed: standing !== "forbidden", paused: standing === "paused" };
    await save.mutateAsync(form);
    onDone({
      title: standing === "forbidden" ? "The domain is forbidden" : standing === "paused" ? "The domain is paused" : seconds ? `The domain is asked every ${seconds} s at most` : "The domain is asked as its source says",
      text: standing === "forbidden" ? "What was queued of it ends; undo lets it be asked again, what ended comes back with the next run." : "A crawl that runs obeys within a second or two.",
      undo: () => save.mutateAsync(was),
    });
  }
  return (
    <Card title="Settings">
      <form className="space-y-4" onSubmit={(event) => { event.preventDefault(); go().catch(() => undefined); }}>
        <TextField label="Seconds between two requests" inputMode="decimal" value={delay} onChange={(event) => setDelay(event.target.value)} placeholder="as the source and robots.txt say"
          hint="1 at least. It only ever slows: where the source or robots.txt asks for more, more is kept." problem={seconds === undefined ? "Type a number of seconds from 1 to 86400, or nothing." : refused} />
        <SelectField label="Whether it is asked" value={standing} onChange={(event) => setStanding(event.target.value as Standing)}
          hint={standing === "forbidden" ? "What is queued of it ends at once, in a crawl that runs, too." : standing === "paused" ? "What is queued stays queued until it goes on." : undefined}>
          <option value="crawled">It is crawled</option>
          <option value="paused">It is paused: nothing is asked, the queue stays</option>
          <option value="forbidden">It is forbidden: never asked, the queue ends</option>
        </SelectField>
        {save.error && !refused ? <Problem problem={save.error} /> : null}
        <Button type="submit" kind={standing === "forbidden" && before !== "forbidden" ? "danger" : "main"} disabled={!isChanged || seconds === undefined || save.isPending}>{save.isPending ? "Saving…" : "Save"}</Button>
      </form>
    </Card>
  );
}
