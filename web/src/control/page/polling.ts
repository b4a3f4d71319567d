/** Pieces of a list that are asked for again by themselves; of a longer one that somebody has opened, only who asks anew gets all. */
const FEW = 3;

interface Asked {
  state: { data?: { pages: readonly unknown[] } | undefined };
}

/** How often a list that comes piece by piece is asked for anew: each time all its pieces are, so that a long one is left alone. */
export function pollFew(every: number | false): (query: Asked) => number | false {
  return (query) => ((query.state.data?.pages.length ?? 0) > FEW ? false : every);
}
