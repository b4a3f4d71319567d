import type { Tone } from "@/design/Tag";
import type { Role, User } from "./useUsers";

export const ROLES: Record<Role, string> = {
  member: "Member: reads what is for members",
  observer: "Observer: reads the control room, changes nothing",
  operator: "Operator: runs crawls and cares for the archive",
  administrator: "Administrator: also users, takedowns, settings",
};

export const STATE_TONES: Record<User["state"], Tone> = { active: "good", invited: "accent", disabled: "bad" };
