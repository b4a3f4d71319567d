interface Part {
  removed: number;
  done: boolean;
}

/** Have the server remove piece after piece until nothing is left, and tell how much is gone; return it. */
export async function removeAll(removePart: () => Promise<Part>, onRemoved: (removed: number) => void): Promise<number> {
  let removed = 0;
  for (;;) {
    const part = await removePart();
    removed += part.removed;
    if (part.done) return removed;
    onRemoved(removed);
  }
}
