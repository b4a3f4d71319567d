/** The control room's pages about crawling: overview, sources, jobs, executions, feeds. */
export const crawlRoutes = [] as const;
