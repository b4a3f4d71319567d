import { isDay } from "@/api/day";

/** Read a word from the address bar; the router reads ?q=2020 as a number and ?q=true as a truth. */
export function text(value: unknown): string | undefined {
  const found = typeof value === "string" ? value : typeof value === "number" || typeof value === "boolean" ? String(value) : "";
  return found.trim() ? found : undefined;
}

/** Read one of a few words; anything else is left out. */
export function among<T extends string>(value: unknown, allowed: readonly T[]): T | undefined {
  return allowed.find((one) => one === value);
}

/** Read an id. */
export function whole(value: unknown): number | undefined {
  const found = Number(value);
  return value !== "" && value !== null && typeof value !== "boolean" && Number.isSafeInteger(found) && found >= 0 ? found : undefined;
}

/** Read a day as 2026-11-17. */
export function day(value: unknown): string | undefined {
  return isDay(value) ? value : undefined;
}

type Tidy<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Leave out what is not asked for, so that the address stays short. */
export function tidy<T extends object>(asked: T): Tidy<T> {
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined && value !== "")) as Tidy<T>;
}
