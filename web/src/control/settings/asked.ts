import { among, text, tidy } from "@/control/page/asked";

export const ORIGINS = ["default", "file", "dotenv", "environment", "command"] as const;

export interface AskedSettings {
  search?: string;
  origin?: (typeof ORIGINS)[number];
}

export function readAskedSettings(found: Record<string, unknown>): AskedSettings {
  return tidy({ search: text(found["search"]), origin: among(found["origin"], ORIGINS) });
}
