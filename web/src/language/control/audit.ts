import { room } from "../room";

/** Who did what, when, from where and why. */
export const t = room("audit", {
  title: "Audit log",
  intro: "Who did what, when, from where and why. Nothing of it can be changed here.",
  filterLog: "Filter the log",
  who: "Who",
  didWhat: "Action",
  toWhat: "Subject",
  from: "From",
  to: "To",
  filter: "Filter",
  all: "All",
  noneHow: "Remove a filter. Who and subject match as they are written; an action also matches by its first word.",
  when: "When",
  detail: "Detail",
});
