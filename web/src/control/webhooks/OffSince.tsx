import { Moment } from "@/control/live/Moment";
import { withParts } from "@/language/room";
import { t } from "@/language/control/webhooks";

/** Why and since when a webhook is disabled: a person did it, or the server, which gives its reason in English. */
export function OffSince({ reason, at }: { reason: string | null; at: string | null }) {
  const time = <Moment at={at} />;
  if (reason === null || reason === "by hand" || reason === "removed") return withParts(t("offSince", { why: t.of("offWhy", reason ?? "by hand") }), { time });
  return withParts(t("offBecause"), { time, why: <span lang="en">{reason}</span> });
}
