import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body } from "@/api/client";
import type { components } from "@/api/schema";
import { useDeed } from "@/api/useDeed";
import { POLL_MS } from "../live/useLive";
import type { AskedFeeds } from "./asked";
import { t } from "@/language/control/feeds";

type Schemas = components["schemas"];
export type Feed = Schemas["FeedRecord"];

/** GET /api/admin/feeds */
export function useFeeds(asked: AskedFeeds) {
  return useQuery({
    queryKey: ["feeds", asked],
    placeholderData: keepPreviousData,
    staleTime: 0,
    refetchInterval: POLL_MS,
    queryFn: ({ signal }) => body<{ items: Feed[]; next?: string | null }>(api.GET("/api/admin/feeds", { signal, params: { query: { limit: 50, ...(asked.source ? { source: asked.source } : {}), ...(asked.kind ? { kind: asked.kind } : {}), ...(asked.disabled ? { disabled: asked.disabled === "yes" } : {}), ...(asked.cursor ? { cursor: asked.cursor } : {}) } } })),
  });
}

/** GET /api/admin/feeds/{id} */
export function useFeed(id: number | null) {
  return useQuery({ queryKey: ["feeds", "one", id], enabled: id !== null, queryFn: ({ signal }) => body<Schemas["FeedDetail"]>(api.GET("/api/admin/feeds/{id}", { signal, params: { path: { id: id ?? 0 } } })) });
}

export type FeedDeed =
  | { deed: "add"; source: string; url: string; kind: "feed" | "sitemap" }
  | { deed: "poll" | "discover"; source: string }
  | { deed: "enable" | "disable" | "remove"; feed: Feed };

/** The routes below /api/admin/feeds that change something; says afterwards what was done. */
export function useFeedDeed() {
  const queries = useQueryClient();
  return useDeed({ mutationFn: perform, onSettled: () => queries.invalidateQueries({ queryKey: ["feeds"] }) });
}

async function perform(wish: FeedDeed): Promise<string> {
  switch (wish.deed) {
    case "add": {
      const { source, url, kind } = wish;
      const made = await body<Feed>(api.POST("/api/admin/feeds", { body: { source, url, kind } }));
      return t("did.add", { url: made.url, source: made.source });
    }
    case "poll":
      await api.POST("/api/admin/feeds/poll", { body: { source: wish.source } });
      return t("did.poll", { source: wish.source });
    case "discover":
      await api.POST("/api/admin/feeds/discover", { body: { source: wish.source } });
      return t("did.discover", { source: wish.source });
    case "enable":
      await api.POST("/api/admin/feeds/{id}/enable", { params: { path: { id: wish.feed.id } } });
      return t("did.enable", { url: wish.feed.url });
    case "disable":
      await api.POST("/api/admin/feeds/{id}/disable", { params: { path: { id: wish.feed.id } } });
      return t("did.disable", { url: wish.feed.url });
    case "remove":
      await api.DELETE("/api/admin/feeds/{id}", { params: { path: { id: wish.feed.id } } });
      return t("did.remove", { url: wish.feed.url, source: wish.feed.source });
  }
}

/** What takes a deed back; null where that needs more than a click. */
export function undoOf(wish: FeedDeed | undefined): FeedDeed | null {
  if (wish?.deed === "disable") return { deed: "enable", feed: wish.feed };
  if (wish?.deed === "enable") return { deed: "disable", feed: wish.feed };
  if (wish?.deed === "remove") return { deed: "add", source: wish.feed.source, url: wish.feed.url, kind: wish.feed.kind };
  return null;
}
