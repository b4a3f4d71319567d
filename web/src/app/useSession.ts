import { useQuery } from "@tanstack/react-query";
import { readSession, type Permission } from "@/api/session";

/** GET /api/session */
export function useSession() {
  return useQuery({ queryKey: ["session"], queryFn: () => readSession(true), staleTime: 60_000 });
}

/** Whether the one who looks may do a thing; false until it is known. */
export function useMay(permission: Permission): boolean {
  return useSession().data?.permissions.includes(permission) ?? false;
}
