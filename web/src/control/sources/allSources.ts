/** A page of sources, and how many there are in all. */
interface Page<T> {
  sources: T[];
  total: number;
}

// Pages that are asked for at most: a select of more than five thousand serves nobody.
const MOST = 20;

/** All sources, asked for page after page; what another made or removed between two pages is listed once at most. */
export async function allSources<T extends { id: number }>(page: (offset: number) => Promise<Page<T>>): Promise<T[]> {
  const found = new Map<number, T>();
  for (let asked = 0, offset = 0; asked < MOST; asked += 1) {
    const { sources, total } = await page(offset);
    for (const one of sources) found.set(one.id, one);
    offset += sources.length;
    if (sources.length === 0 || offset >= total) break;
  }
  return [...found.values()];
}
