import { Link } from "@tanstack/react-router";
import { Puzzle } from "lucide-react";
import { useWords } from "@/language/LanguageContext";
import { digits } from "@/page/calendar";
import { spread, told } from "./apart";
import { useParts, type CaptureView } from "./useCapture";

/** How far the parts of a page lie apart in time, and how many are missing; it leads to the list of them. */
export function Coherence({ view }: { view: CaptureView }) {
  const { t, language } = useWords();
  const { data } = useParts(view.snapshotId);
  // Its place is kept: it comes after the page is shown.
  if (!data?.isReadable || data.parts.length === 0) return <span aria-hidden className="min-h-7 sm:min-w-72" />;
  const isBad = data.missing > 0;
  const words = [
    t("view.partsFound", { found: data.parts.length - data.missing, count: data.parts.length }),
    data.parts.length > data.missing ? t("view.partsWithin", { time: told(spread(data.earliestSeconds, data.latestSeconds), language) }) : "",
  ].filter(Boolean).join(", ");
  return (
    <Link to="/view/$timestamp" params={{ timestamp: digits(view.captureTimestamp) }} search={{ url: view.url, mode: "parts" }} replace className={`inline-flex min-h-7 items-center gap-1 rounded-full sm:min-w-72 border px-2 no-underline ${isBad ? "border-warn bg-warn-wash text-warn" : "border-good bg-good-wash text-good"}`}>
      <Puzzle aria-hidden className="size-4" />{words}
    </Link>
  );
}
