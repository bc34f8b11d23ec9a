import { useState, type FormEvent } from "react";

import { apiPath, post, type Failure } from "../../api/client";
import type { RowsAnswer } from "../../api/more-types";
import { useResource } from "../../api/use-resource";
import { duration, plural } from "../../lib/format";
import { useRows } from "../../me";
import { Section } from "../../ui/section";
import { Empty, Loading, Problem } from "../../ui/states";
import { RowTable } from "./row-table";
import { searchBody, type Search } from "./search-body";
import type { TabProps } from "./tab-props";

const PAGE = 50;

export function RowsTab({ answer }: TabProps) {
  const refused = useRows(answer.table.conn_id);
  if (refused !== null) {
    return (
      <div className="notice warn">
        <strong>Rows and search are closed for you.</strong>
        <span>{refused}</span>
      </div>
    );
  }
  return <Open id={answer.table.id} />;
}

function Open({ id }: { id: string }) {
  const [offset, setOffset] = useState(0);
  const sample = useResource<RowsAnswer>(apiPath(["tables", id, "rows"], { limit: PAGE, offset }));
  const [found, setFound] = useState<RowsAnswer | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const run = (search: Search): void => {
    const body = searchBody(search);
    setFailure(null);
    if (body === null) {
      setFound(null);
      return;
    }
    setBusy(true);
    post<RowsAnswer>(apiPath(["tables", id, "search"]), body).then(
      (answer) => {
        setFound(answer);
        setBusy(false);
      },
      (error: Failure) => {
        setFailure(error);
        setBusy(false);
      },
    );
  };
  const shown = found ?? sample.data;
  return (
    <div className="sections">
      <Section id="rows" title={found ? "Found rows" : "Sample rows"} note={shown ? note(shown) : null} flush>
        <div className="body">
          <SearchForm sample={sample.data} run={run} busy={busy} />
          {failure ? <Problem failure={failure} /> : null}
          {sample.failure ? <Problem failure={sample.failure} retry={sample.reload} /> : null}
          {shown === null && sample.loading ? <Loading what="the rows" /> : null}
        </div>
        {shown ? <RowTable answer={shown} /> : null}
        {found === null && sample.data ? <Pages offset={offset} answer={sample.data} go={setOffset} /> : null}
      </Section>
    </div>
  );
}

function note(answer: RowsAnswer): string {
  return `${plural(answer.rows.length, "row")} of version ${answer.version} in ${duration(answer.seconds)}`;
}

function Pages({ offset, answer, go }: { offset: number; answer: RowsAnswer; go: (offset: number) => void }) {
  if (offset === 0 && answer.rows.length < PAGE) return answer.rows.length ? null : <Empty>The table has no rows.</Empty>;
  return (
    <p className="empty flow">
      <button type="button" className="button" disabled={offset === 0} onClick={() => go(Math.max(0, offset - PAGE))}>
        Earlier
      </button>
      rows {offset + 1} to {offset + answer.rows.length}
      <button type="button" className="button" disabled={answer.rows.length < PAGE} onClick={() => go(offset + PAGE)}>
        Later
      </button>
    </p>
  );
}

function SearchForm({ sample, run, busy }: { sample: RowsAnswer | null; run: (search: Search) => void; busy: boolean }) {
  const [search, setSearch] = useState<Search>({ filter: "", text: "", textColumn: "", vector: "", vectorColumn: "", k: "20" });
  const set = (part: Partial<Search>): void => setSearch((old) => ({ ...old, ...part }));
  const texts = sample?.text_columns ?? [];
  const vectors = sample?.vector_columns ?? [];
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    run({ ...search, textColumn: search.textColumn || texts[0] || "", vectorColumn: search.vectorColumn || vectors[0]?.name || "" });
  };
  return (
    <form className="row-search" onSubmit={submit} aria-label="Search the rows">
      <label className="field grow">
        <span>Filter (SQL)</span>
        <input type="text" name="filter" className="mono" placeholder="price < 20 AND country = 'CH'" value={search.filter} onChange={(event) => set({ filter: event.target.value })} />
      </label>
      {texts.length ? (
        <label className="field grow">
          <span>
            Words in <Choice name="text_column" options={texts} value={search.textColumn} set={(textColumn) => set({ textColumn })} />
          </span>
          <input type="text" name="text" placeholder="red running shoes" value={search.text} onChange={(event) => set({ text: event.target.value, vector: "" })} />
        </label>
      ) : null}
      {vectors.length ? (
        <label className="field grow">
          <span>
            Nearest in <Choice name="vector_column" options={vectors.map((one) => one.name)} value={search.vectorColumn} set={(vectorColumn) => set({ vectorColumn })} />
          </span>
          <input type="text" name="vector" className="mono" placeholder={`[0.1, 0.2, …] of ${vectors[0]?.dimension}`} value={search.vector} onChange={(event) => set({ vector: event.target.value, text: "" })} />
        </label>
      ) : null}
      <label className="field">
        <span>Rows</span>
        <input type="number" name="k" min={1} max={200} value={search.k} onChange={(event) => set({ k: event.target.value })} />
      </label>
      <button type="submit" className="button primary" data-action="search">
        {busy ? "Searching …" : "Search"}
      </button>
    </form>
  );
}

function Choice({ name, options, value, set }: { name: string; options: readonly string[]; value: string; set: (value: string) => void }) {
  if (options.length === 1) return <b>{options[0]}</b>;
  return (
    <select name={name} value={value || options[0]} onChange={(event) => set(event.target.value)}>
      {options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  );
}
