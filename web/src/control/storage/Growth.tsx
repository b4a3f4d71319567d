import { useMemo } from "react";
import { TimeChart } from "@/control/charts/TimeChart";
import { bytes } from "@/control/charts/format";
import { outlook, sizes } from "./growth";
import type { StorageState } from "./useStorage";

/** The size of the archive over time, and how long the room lasts at this pace. */
export function Growth({ state, now }: { state: StorageState; now: number }) {
  const { times, lines } = useMemo(() => {
    const found = sizes(state.growth, now);
    return { times: found.times, lines: [{ label: "WARC files", values: found.bytes }] };
  }, [state.growth, now]);
  const free = state.volumes.find((volume) => volume.holds.includes("warcs"))?.freeBytes ?? state.volumes[0]?.freeBytes ?? 0;
  const { perDay, days } = outlook(state.growth, now, free);
  if (times.length === 0) return <p className="text-soft">Nothing is sealed yet. With the first crawl a line begins here.</p>;
  return (
    <>
      <TimeChart title="Size of the archive" isWhole caption="sealed WARC files at the end of each day" times={times} lines={lines} format={bytes} />
      <p className="mt-3">{days === null ? "It did not grow in the last thirty days." : `It grows by ${bytes(perDay)} a day; at this pace the ${bytes(free)} that are free last ${days > 3650 ? "for more than ten years" : `${days.toLocaleString("en")} days`}.`}</p>
    </>
  );
}
