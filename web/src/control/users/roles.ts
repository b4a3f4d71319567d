import type { Tone } from "@/design/Tag";
import type { Role, User } from "./useUsers";

export const ROLES: readonly Role[] = ["member", "observer", "operator", "administrator"];

export const STATE_TONES: Record<User["state"], Tone> = { active: "good", invited: "accent", disabled: "bad" };
