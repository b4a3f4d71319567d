import { CircleAlert, CircleCheck, Info, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";

type Tone = "info" | "good" | "warn" | "bad";
const LOOKS = {
  info: { box: "border-line bg-sheet", icon: Info, colour: "text-accent" },
  good: { box: "border-good bg-good-wash", icon: CircleCheck, colour: "text-good" },
  warn: { box: "border-warn bg-warn-wash", icon: TriangleAlert, colour: "text-warn" },
  bad: { box: "border-bad bg-bad-wash", icon: CircleAlert, colour: "text-bad" },
};

/** Something the reader should know: an error with its next step, an empty list that teaches, a thing that was done. */
export function Notice({ tone = "info", title, children, actions }: { tone?: Tone; title: ReactNode; children?: ReactNode; actions?: ReactNode }) {
  const { box, icon: Icon, colour } = LOOKS[tone];
  return (
    <div role={tone === "bad" ? "alert" : "status"} className={`flex gap-3 rounded-card border p-4 ${box}`}>
      <Icon aria-hidden className={`mt-0.5 size-5 shrink-0 ${colour}`} />
      <div className="min-w-0 grow">
        <p className="font-semibold break-words">{title}</p>
        {children && <div className="mt-1 text-soft break-words">{children}</div>}
        {actions && <div className="mt-3 flex flex-wrap gap-2">{actions}</div>}
      </div>
    </div>
  );
}
