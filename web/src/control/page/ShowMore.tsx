import { Button } from "@/design/Button";
import { t } from "@/language/control/common";

interface Shown {
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
  count: number;
  /** What is listed. */
  noun: "address" | "domain" | "event" | "file" | "message" | "report" | "session" | "takedown" | "token" | "user" | "webhook";
}

/** The end of a list: how many are shown, and the next piece of it. */
export function ShowMore({ list, count, noun }: Shown) {
  return (
    <p className="mt-3 flex min-h-10 flex-wrap items-center gap-3 text-sm text-soft">
      <span role="status">{t(list.hasNextPage ? "more" : "all", { shown: t(`list.${noun}`, { count }) })}</span>
      {list.hasNextPage && <Button disabled={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>{list.isFetchingNextPage ? t("loading") : t("showMore")}</Button>}
    </p>
  );
}
