import { sentence } from "@/control/page/words";
import { alerted, type Told } from "./alerted";

/** The server's own sentence below a title in another language: only it names the worker, the run and the source. */
export function AlertMessage({ alert }: { alert: Told }) {
  return alerted(alert) === alert.message ? null : <span lang="en" className="block text-sm break-words text-soft">{sentence(alert.message)}</span>;
}
