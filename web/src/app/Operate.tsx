import type { ReactNode } from "react";
import type { Permission } from "@/api/session";
import { useMay } from "./useSession";

/** Shows what changes something to who may change it: the server refuses everybody else. */
export function Operate({ needs = "operate", children }: { needs?: Permission; children: ReactNode }) {
  return useMay(needs) ? children : null;
}

