import { Notice } from "@/design/Notice";
import { useLacksWorker } from "./useStart";

/** Says so where no process runs crawls: what is started here would wait without a word. */
export function NoWorker() {
  if (!useLacksWorker()) return null;
  return (
    <Notice tone="warn" title="No worker is running, so crawls wait.">
      This server was started without one. <code>holdfast serve</code> runs a worker beside the server; on another machine, start <code>holdfast worker start</code>. A crawl that you start now is queued until then.
    </Notice>
  );
}
