import { Tag, type Tone } from "@/design/Tag";
import { useWords } from "@/language/LanguageContext";

const TONES: Record<string, Tone> = { new_page: "good", updated: "accent", gone: "bad", error: "warn", missed: "warn", noise: "warn", moved: "accent", new: "good", changed: "accent" };
const KNOWN = ["new_page", "updated", "gone", "unchanged", "error", "noise", "new", "changed", "moved", "missed", "withdrawn"] as const;

/** What a capture brought, in a word; a kind that is not known yet is shown as the server calls it. */
export function ChangeTag({ change }: { change: string | null }) {
  const { t } = useWords();
  const known = KNOWN.find((one) => one === change);
  if (change === null) return <span className="text-soft">–</span>;
  return <Tag tone={TONES[change] ?? "plain"}>{known ? t(`change.${known}`) : change}</Tag>;
}
