import { room } from "../room";

/** Alerts by their name, for languages that the server does not speak. */
export const t = room("alerts", {
  "name.high_error_rate": "high error rate",
  "name.frontier_backlog": "growing queue",
  "name.worker_silent": "silent worker",
  "name.crawl_stalled": "stalled crawl",
  high_error_rate: "{share} of the latest responses were 4xx or 5xx. The list of domains shows which sites.",
  frontier_backlog: "The queue grows by {share} a minute. Check for a trap or a scope that is too wide.",
  worker_silent: "A worker has been silent for {time}. Start one again: holdfast start-worker",
  crawl_stalled: "A run has captured nothing for {time}. Restart it: holdfast auto-recover --apply",
});
