import { Notice } from "@/design/Notice";
import { t } from "@/language/control/start";
import { withParts } from "@/language/room";
import { useLacksWorker } from "./useStart";

/** Says so where no process runs crawls: what is started here would wait without a word. */
export function NoWorker() {
  if (!useLacksWorker()) return null;
  return <Notice tone="warn" title={t("noWorker")}>{withParts(t("noWorkerHow"), { serve: <code>holdfast serve</code>, start: <code>holdfast start-worker</code> })}</Notice>;
}
