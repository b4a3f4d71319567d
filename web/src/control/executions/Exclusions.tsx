import { Notice } from "@/design/Notice";

/** Rules that leave addresses out while a run goes on. */
export function Exclusions({ id, isRunning }: { id: number; isRunning: boolean }) {
  return <Notice title={isRunning ? `Run ${id} goes on.` : "The run is over."} />;
}
