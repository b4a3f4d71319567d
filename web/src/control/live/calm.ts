export interface Calm {
  ask: () => void;
  stop: () => void;
}

/** Do something when it is asked for, at once but never twice within `ms`: what is asked for too soon is done at the end of that time, once. */
export function calmed(run: () => void, ms: number): Calm {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let isWanted = false;
  function go() {
    isWanted = false;
    timer = setTimeout(() => {
      timer = null;
      if (isWanted) go();
    }, ms);
    run();
  }
  return {
    ask: () => {
      if (timer) isWanted = true;
      else go();
    },
    stop: () => {
      if (timer) clearTimeout(timer);
      timer = null;
      isWanted = false;
    },
  };
}

/** Gather what comes one by one and hand it on together, at most once within `ms`. */
export function gathered<Item>(take: (items: Item[]) => void, ms: number): { add: (items: readonly Item[]) => void; stop: () => void } {
  let waiting: Item[] = [];
  const { ask, stop } = calmed(() => {
    const items = waiting;
    waiting = [];
    take(items);
  }, ms);
  return {
    add: (items) => {
      waiting = [...waiting, ...items];
      ask();
    },
    stop,
  };
}
