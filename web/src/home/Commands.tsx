/** A sentence in which what stands between backticks is typed into a terminal. */
export function Commands({ text }: { text: string }) {
  return <>{text.split("`").map((part, at) => (at % 2 === 1 ? <code key={at} className="break-words">{part}</code> : part))}</>;
}
