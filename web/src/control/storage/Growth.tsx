import { bytes } from "@/control/page/amounts";
import { outlook, sizes } from "./growth";
import type { StorageState } from "./useStorage";

/** The size of the archive over time, and how long the room lasts at this pace. */
export function Growth({ state, now }: { state: StorageState; now: number }) {
  const { times } = sizes(state.growth, now);
  const free = state.volumes.find((volume) => volume.holds.includes("warcs"))?.freeBytes ?? state.volumes[0]?.freeBytes ?? 0;
  const { perDay, days } = outlook(state.growth, now, free);
  if (times.length === 0) return <p className="text-soft">Nothing is sealed yet. With the first crawl a line begins here.</p>;
  return (
    <>
      <p className="mt-2">{days === null ? "It did not grow in the last thirty days." : `It grows by ${bytes(perDay)} a day; at this pace the ${bytes(free)} that are free last ${days > 3650 ? "for more than ten years" : `${days.toLocaleString("en")} days`}.`}</p>
    </>
  );
}
