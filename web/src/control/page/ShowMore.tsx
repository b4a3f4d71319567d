import { Button } from "@/design/Button";

/** The end of a list: how many are shown, and the next piece of it. */
export function ShowMore({ list, count, noun }: { list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }; count: number; noun: string }) {
  return (
    <p className="mt-3 flex min-h-10 flex-wrap items-center gap-3 text-sm text-soft">
      <span role="status">{count.toLocaleString("en")} {noun} shown{list.hasNextPage ? ", and there are more" : ""}</span>
      {list.hasNextPage && <Button disabled={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>{list.isFetchingNextPage ? "Asking…" : "Show more"}</Button>}
    </p>
  );
}
