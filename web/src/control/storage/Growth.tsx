import { useMemo } from "react";
import { TimeChart } from "@/control/charts/TimeChart";
import { bytes } from "@/control/charts/format";
import { outlook, sizes } from "./growth";
import type { StorageState } from "./useStorage";
import { t } from "@/language/control/storage";

/** The size of the archive over time, and how long the room lasts at this pace. */
export function Growth({ state, now }: { state: StorageState; now: number }) {
  const { times, lines } = useMemo(() => {
    const found = sizes(state.growth, now);
    return { times: found.times, lines: [{ label: t("warcFiles"), values: found.bytes }] };
  }, [state.growth, now]);
  const free = state.volumes.find((volume) => volume.holds.includes("warcs"))?.freeBytes ?? state.volumes[0]?.freeBytes ?? 0;
  const { perDay, days } = outlook(state.growth, now, free);
  if (times.length === 0) return <p className="text-soft">{t("nothingSealed")}</p>;
  return (
    <>
      <TimeChart title={t("sizeOf")} isWhole caption={t("sizeHow")} times={times} lines={lines} format={bytes} />
      <p className="mt-3">{days === null ? t("noGrowth") : days > 3650 ? t("growsLong", { size: bytes(perDay), free: bytes(free) }) : t("grows", { size: bytes(perDay), free: bytes(free), count: days })}</p>
    </>
  );
}
