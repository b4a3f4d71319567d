import { useState } from "react";
import { Problem } from "@/app/Problem";
import { useMay } from "@/app/useSession";
import type { Deed } from "@/control/page/Done";
import { refusedAt } from "@/control/page/refused";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { SelectField, TextField } from "@/design/Field";
import { useDomainSettings, type DomainDetail, type DomainSettings } from "./useDomains";
import { t } from "@/language/control/domains";

type Standing = "crawled" | "paused" | "forbidden";

/** Read the delay as it is typed: empty leaves it to the source; undefined cannot be one. */
export function readDelay(written: string): number | null | undefined {
  if (!written.trim()) return null;
  const seconds = Number(written.replace(",", "."));
  return Number.isFinite(seconds) && seconds >= 1 && seconds <= 86_400 ? seconds : undefined;
}

/** What operators set for a domain; a crawl that runs obeys within a second or two. */
export function SettingsCard({ found, onDone }: { found: DomainDetail; onDone: (deed: Deed) => void }) {
  const mayOperate = useMay("operate");
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
      title: standing === "forbidden" ? t("isForbidden") : standing === "paused" ? t("isPaused") : seconds ? t("atMost", { seconds }) : t("ofSourceApplies"),
      text: standing === "forbidden" ? t("forbiddenHow") : t("obeys"),
      undo: () => save.mutateAsync(was),
    });
  }
  return (
    <Card title={t("settings")}>
      <form onSubmit={(event) => { event.preventDefault(); go().catch(() => undefined); }}><fieldset disabled={!mayOperate} className="min-w-0 space-y-4">
        <TextField label={t("seconds")} inputMode="decimal" value={delay} onChange={(event) => setDelay(event.target.value)} placeholder={t("secondsDefault")}
          hint={t("secondsHint")} problem={seconds === undefined ? t("secondsWrong") : refused} />
        <SelectField label={t("crawling")} value={standing} onChange={(event) => setStanding(event.target.value as Standing)}
          hint={standing === "forbidden" ? t("forbiddenHint") : standing === "paused" ? t("pausedHint") : undefined}>
          <option value="crawled">{t("crawled")}</option>
          <option value="paused">{t("pausedIs")}</option>
          <option value="forbidden">{t("forbiddenIs")}</option>
        </SelectField>
        {save.error && !refused ? <Problem problem={save.error} /> : null}
        {mayOperate && <Button type="submit" kind={standing === "forbidden" && before !== "forbidden" ? "danger" : "main"} disabled={!isChanged || seconds === undefined || save.isPending}>{save.isPending ? t("saving") : t("save")}</Button>}
      </fieldset></form>
    </Card>
  );
}
