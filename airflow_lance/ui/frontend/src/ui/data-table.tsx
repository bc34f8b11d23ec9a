import { useMemo, useState, type ReactNode } from "react";

import { sortRows, type Direction } from "../lib/sort";

export interface Column<Row> {
  readonly name: string;
  readonly head: string;
  readonly cell: (row: Row) => ReactNode;
  /** What the column sorts by; without it the column cannot be sorted. */
  readonly by?: (row: Row) => number | string | null;
  readonly number?: boolean;
  readonly first?: Direction;
  readonly title?: string;
}

export interface DataTableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly sorted?: { readonly column: string; readonly direction: Direction };
  readonly sticky?: boolean;
  readonly onSort?: (column: string, direction: Direction) => void;
  /** What stands beside the first cell of a row instead of its other cells, such as a long error. */
  readonly instead?: (row: Row) => ReactNode;
}

export function DataTable<Row>({ label, columns, rows, keyOf, sorted, sticky = false, onSort, instead }: DataTableProps<Row>) {
  const [own, setOwn] = useState(sorted);
  const order = onSort ? sorted : own;
  const shown = useMemo(() => {
    const column = columns.find((item) => item.name === order?.column);
    return column?.by && order ? sortRows(rows, column.by, order.direction) : rows;
  }, [rows, columns, order]);
  const press = (column: Column<Row>): void => {
    const first = column.first ?? (column.number ? "descending" : "ascending");
    const turned = order?.direction === "ascending" ? "descending" : "ascending";
    const direction = order?.column === column.name ? turned : first;
    (onSort ?? ((name, next) => setOwn({ column: name, direction: next })))(column.name, direction);
  };
  return (
    <div className="scroll">
      <table className={sticky ? "data sticky" : "data"} aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.name}
                scope="col"
                className={column.number ? "n" : undefined}
                title={column.title}
                aria-sort={order?.column === column.name ? order.direction : undefined}
              >
                {column.by ? (
                  <button type="button" onClick={() => press(column)}>
                    {column.head}
                  </button>
                ) : (
                  column.head
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => {
            const wide = instead?.(row) ?? null;
            return (
              <tr key={keyOf(row)}>
                {(wide === null ? columns : columns.slice(0, 1)).map((column) => (
                  <td key={column.name} className={column.number ? "n" : undefined}>
                    {column.cell(row)}
                  </td>
                ))}
                {wide === null ? null : <td colSpan={columns.length - 1}>{wide}</td>}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
