import type { Key, ReactNode } from "react";

export interface Column<Row> {
  /** The heading, and on a phone the label before each value. */
  head: ReactNode;
  cell: (row: Row) => ReactNode;
  isNumber?: boolean;
}

/** Rows of one kind. On a phone each row is a small card: nothing scrolls sideways. */
export function DataTable<Row>({ caption, columns, rows, keyOf, empty }: { caption: string; columns: Column<Row>[]; rows: Row[]; keyOf: (row: Row) => Key; empty: ReactNode }) {
  if (rows.length === 0) return <>{empty}</>;
  return (
    <table className="block w-full border-collapse md:table">
      <caption className="sr-only">{caption}</caption>
      <thead className="sr-only md:not-sr-only md:table-header-group">
        <tr>
          {columns.map((column, at) => (
            <th key={at} scope="col" className={`border-b border-edge px-2 py-2 text-sm font-semibold text-soft ${column.isNumber ? "text-right" : "text-left"}`}>{column.head}</th>
          ))}
        </tr>
      </thead>
      <tbody className="block md:table-row-group">
        {rows.map((row) => (
          <tr key={keyOf(row)} className="block border-b border-line py-2 md:table-row md:py-0 md:hover:bg-sunk">
            {columns.map((column, at) => (
              <td key={at} className={`flex min-w-0 justify-between gap-4 px-2 py-1 break-words md:table-cell md:py-2 md:align-top ${column.isNumber ? "tabular-nums md:text-right" : ""}`}>
                <span aria-hidden className="text-sm text-soft md:hidden">{column.head}</span>
                <span className={`min-w-0 text-right ${column.isNumber ? "" : "md:text-left"}`}>{column.cell(row)}</span>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
