import { dotSize, type StatusClass } from "./calendar";

const COLOURS: Record<StatusClass, string> = { "2xx": "fill-good", "3xx": "fill-accent", "4xx": "fill-bad", "5xx": "fill-warn", other: "fill-soft" };

/** A shape for each class of answers, so that colour never stands alone: disc, ring, square, triangle, bar. */
function Shape({ status }: { status: StatusClass }) {
  if (status === "3xx") return <path d="M0 10a10 10 0 1 0 20 0a10 10 0 1 0-20 0M5 10a5 5 0 1 1 10 0a5 5 0 1 1-10 0" fillRule="evenodd" />;
  if (status === "4xx") return <rect x="1" y="1" width="18" height="18" rx="2" />;
  if (status === "5xx") return <path d="M10 0L20 19H0Z" />;
  if (status === "other") return <rect x="0" y="6" width="20" height="8" rx="2" />;
  return <circle cx="10" cy="10" r="10" />;
}

/** How a day or a capture looks: shape and colour by status, size by captures, a star where the content changed. */
export function Dot({ status, captures = 1, isChanged = false }: { status: StatusClass; captures?: number; isChanged?: boolean }) {
  const size = dotSize(captures);
  return (
    <span className="relative inline-block">
      <svg aria-hidden viewBox="0 0 20 20" width={size} height={size} className={COLOURS[status]}><Shape status={status} /></svg>
      {isChanged && <svg aria-hidden viewBox="0 0 12 12" width="12" height="12" className="absolute -top-1.5 -right-2 fill-ink stroke-sheet [stroke-width:1.5] [paint-order:stroke]"><path d="M6 0l1.6 3.9L12 4.3 8.7 7.1 9.7 11.5 6 9.2 2.3 11.5 3.3 7.1 0 4.3l4.4-.4z" /></svg>}
    </span>
  );
}
