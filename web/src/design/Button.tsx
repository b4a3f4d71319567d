import type { ButtonHTMLAttributes } from "react";

type Kind = "plain" | "main" | "danger" | "bare";

const KINDS: Record<Kind, string> = {
  plain: "border border-edge bg-sheet text-ink hover:bg-sunk",
  main: "border border-accent bg-accent text-on-accent hover:brightness-110",
  danger: "border border-bad bg-sheet text-bad hover:bg-bad-wash",
  bare: "border border-transparent text-accent hover:bg-wash",
};

export function buttonClass(kind: Kind = "plain", extra = "") {
  return `inline-flex min-h-10 items-center justify-center gap-2 rounded-part px-3.5 py-1.5 font-semibold no-underline transition-colors disabled:cursor-not-allowed disabled:opacity-60 ${KINDS[kind]} ${extra}`;
}

export function Button({ kind = "plain", className = "", type = "button", ...rest }: ButtonHTMLAttributes<HTMLButtonElement> & { kind?: Kind }) {
  return <button type={type} className={buttonClass(kind, className)} {...rest} />;
}
