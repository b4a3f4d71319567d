/** The control room's pages about the archive and its machine: frontier, domains, explain, scheduler, editions, care, administration. */
export const careRoutes = [] as const;
