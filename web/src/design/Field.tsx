import { useId, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes } from "react";

const BOX = "w-full rounded-part border border-edge bg-sheet px-3 py-2 text-ink min-h-10 aria-invalid:border-bad";

interface Around {
  label: ReactNode;
  hint?: ReactNode;
  /** What is wrong with it, in a sentence that says what to do. */
  problem?: string | null | undefined;
  hideLabel?: boolean;
}

function Labelled({ label, hint, problem, hideLabel, id, children }: Around & { id: string; children: ReactNode }) {
  return (
    <div>
      <label htmlFor={id} className={hideLabel ? "sr-only" : "mb-1 block font-semibold"}>{label}</label>
      {children}
      {hint && <p id={`${id}-hint`} className="mt-1 text-sm text-soft">{hint}</p>}
      {problem && <p id={`${id}-problem`} role="alert" className="mt-1 text-sm font-semibold text-bad">{problem}</p>}
    </div>
  );
}

function described(id: string, { hint, problem }: Around) {
  return [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ") || undefined;
}

export function TextField({ label, hint, problem, hideLabel, className = "", ...rest }: Around & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  const around = { label, hint, problem, hideLabel };
  return (
    <Labelled {...around} id={id}>
      <input id={id} className={`${BOX} ${className}`} aria-invalid={problem ? true : undefined} aria-describedby={described(id, around)} {...rest} />
    </Labelled>
  );
}

export function TextArea({ label, hint, problem, hideLabel, className = "", ...rest }: Around & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const id = useId();
  const around = { label, hint, problem, hideLabel };
  return (
    <Labelled {...around} id={id}>
      <textarea id={id} className={`${BOX} ${className}`} aria-invalid={problem ? true : undefined} aria-describedby={described(id, around)} {...rest} />
    </Labelled>
  );
}

export function SelectField({ label, hint, problem, hideLabel, className = "", children, ...rest }: Around & SelectHTMLAttributes<HTMLSelectElement>) {
  const id = useId();
  const around = { label, hint, problem, hideLabel };
  return (
    <Labelled {...around} id={id}>
      <select id={id} className={`${BOX} ${className}`} aria-invalid={problem ? true : undefined} aria-describedby={described(id, around)} {...rest}>{children}</select>
    </Labelled>
  );
}
