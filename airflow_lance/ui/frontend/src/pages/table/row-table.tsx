import type { Cell, RowsAnswer } from "../../api/more-types";
import { bytes, whole } from "../../lib/format";
import { Empty } from "../../ui/states";

export function RowTable({ answer }: { answer: RowsAnswer }) {
  if (answer.rows.length === 0) return <Empty>No row fits.</Empty>;
  return (
    <div className="scroll always">
      <table className="data rows" aria-label="Rows">
        <thead>
          <tr>
            {answer.columns.map((column) => (
              <th key={column.name} scope="col">
                {column.name}
                <span className="line2 block mono">{column.type}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {answer.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column} className={typeof cell === "number" ? "n" : undefined}>
                  <CellView cell={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function CellView({ cell }: { cell: Cell }) {
  if (cell === null) return <span className="faint">null</span>;
  if (typeof cell === "object") {
    const [text, title] = objectText(cell);
    return (
      <span className={cell.kind === "text" ? "cell" : "cell mono soft"} title={title}>
        {text}
      </span>
    );
  }
  return <span className="cell">{String(cell)}</span>;
}

function objectText(cell: Exclude<Cell, null | boolean | number | string>): readonly [string, string | undefined] {
  if (cell.kind === "text") return [`${cell.value}…`, `${whole(cell.length)} letters`];
  if (cell.kind === "vector") return [`[${cell.head.map((value) => Number(value.toPrecision(4))).join(", ")}${cell.length > cell.head.length ? ", …" : ""}]`, `${whole(cell.length)} values`];
  if (cell.kind === "binary") return [`${cell.hex}…`, bytes(cell.length)];
  return [`${cell.value}${cell.truncated ? "…" : ""}`, undefined];
}
