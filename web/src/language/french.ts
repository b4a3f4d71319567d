import { unbroken } from "./words";

const found = import.meta.glob<Record<string, string>>("./french/*.ts", { eager: true, import: "fr" });

/** The French of the control room, by the name of its part; English readers never load it. */
export const french = Object.fromEntries(Object.entries(found).map(([path, catalogue]) => [path.replace(/.*\/|\.ts/g, ""), unbroken(catalogue)]));
