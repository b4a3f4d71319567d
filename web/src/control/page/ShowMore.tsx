import { counted } from "@/control/charts/format";
import { Button } from "@/design/Button";

interface Shown {
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
  count: number;
  /** What is listed: one of it, and many where that is more than an s. */
  noun: string;
  many?: string;
}

/** The end of a list: how many are shown, and the next piece of it. */
export function ShowMore({ list, count, noun, many }: Shown) {
  return (
    <p className="mt-3 flex min-h-10 flex-wrap items-center gap-3 text-sm text-soft">
      <span role="status">{counted(count, noun, many)} shown{list.hasNextPage ? ", and there are more" : ""}</span>
      {list.hasNextPage && <Button disabled={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>{list.isFetchingNextPage ? "Asking…" : "Show more"}</Button>}
    </p>
  );
}
