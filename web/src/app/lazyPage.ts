import type { AsyncRouteComponent } from "@tanstack/react-router";
import { createElement, use, type ComponentType } from "react";
import { connection } from "@/api/connection";
import { loadRooms } from "@/language/room";
import { keep, readKept } from "./kept";

/** A part of the application that the server no longer has: another version is served since this window was opened. */
export class PartMissing extends Error {
  constructor(readonly part: string, cause: unknown) {
    super(`the part ${part} cannot be loaded`, { cause });
  }
}

type Module<Name extends string, Props> = Record<Name, ComponentType<Props>>;

/** Load a part; while the server is away, wait for it. PartMissing if the server answers and the part still does not come. */
export async function loadPart<Loaded>(load: () => Promise<Loaded>, part: string, doubt = () => connection.doubt()): Promise<Loaded> {
  for (let isLast = false; ; ) {
    try {
      return await load();
    } catch (problem) {
      if (isLast) throw new PartMissing(part, problem);
    }
    isLast = !(await doubt());
  }
}

/** A page, or a part of one, whose code is loaded when it is first wanted. Unlike the router's own, it never reloads by itself: a window that reloads while the server is away is an error page of the browser. */
export function lazyPage<Name extends string, Props extends object = object>(load: () => Promise<Module<Name, Props>>, name: Name): AsyncRouteComponent<Props> {
  let page: ComponentType<Props> | null = null;
  let loading: Promise<void> | null = null;
  function preload(): Promise<void> {
    loading ??= loadPart(load, name).then(async (module) => {
      await loadPart(loadRooms, name);
      return module;
    }).then(
      (module) => { page = module[name]; },
      (problem: unknown) => { loading = null; throw problem; },
    );
    return loading;
  }
  function Lazy(props: Props) {
    if (!page) use(preload());
    return page && createElement(page, props);
  }
  return Object.assign(Lazy, { preload });
}

const RELOADED = "reloaded-for";

/** Load this address anew to get the version that is served now; false if that was done already for this part of this version, so that nothing goes round in circles. */
export function reloadOnce(part: string, reload = () => location.reload()): boolean {
  const wanted = `${version()} ${part}`;
  if (readKept(RELOADED, { inWindow: true }) === wanted) return false;
  keep(RELOADED, wanted, { inWindow: true });
  // A browser that keeps nothing would reload for ever.
  if (readKept(RELOADED, { inWindow: true }) !== wanted) return false;
  reload();
  return true;
}

/** The version that this window was opened with: the name of its first script, which has a digest in it. */
function version(): string {
  return document.querySelector<HTMLScriptElement>("script[type=module]")?.src ?? "";
}
