"""The DAGs of docs/how-to.md, run in the page's order on the tables that the ones before left."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lance
from airflow.sdk import DAG

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to.md"
DAY = datetime(2013, 1, 2, tzinfo=timezone.utc)
WIDER = "id,city,amount,day,currency\n7,Turku,3.0,2013-01-05,EUR\n"
FILES = {
    "orders-2013-01-02.csv": "1,Berlin,4.0,2013-01-02\n2,Lagos,5.0,2013-01-02\n",
    "shop-1.csv": "3,Lima,6.0,2013-01-03\n",
    "shop-2.csv": "4,Pune,7.0,2013-01-03\n",
    "corrected-2013-01-02.csv": "1,Bonn,4.5,2013-01-02\n2,Lagos,5.5,2013-01-02\n5,Kyiv,1.0,2013-01-02\n",
    "updates.csv": "2,Accra,8.0,2013-01-02\n6,Oslo,9.0,2013-01-04\n",
}


TEXTS = {
    "texts-2013-01-02.csv": "id,text\n1,the sort method of a list\n2,a class may have bases\n",
    "texts-2013-01-03.csv": "id,text\n3,a set has no order\n",
}
SECOND_DAY = datetime(2013, 1, 3, tzinfo=timezone.utc)
NEW_FILES = {
    "orders-2013-01-03.csv": "11,Berlin,4.0,2013-01-03\n12,Lagos,5.0,2013-01-03\n",
    "shop-1.csv": "13,Lima,6.0,2013-01-04\n",
    "shop-2.csv": "14,Pune,7.0,2013-01-04\n",
    "corrected-2013-01-03.csv": "11,Bonn,4.5,2013-01-03\n15,Kyiv,1.0,2013-01-03\n",
    "updates.csv": "2,Dakar,8.0,2013-01-02\n16,Oslo,9.0,2013-01-04\n",
}
"""What has come until the second day."""


def test_every_recipe_runs_on_two_days(
    tmp_path: Path, connection: Callable[[str, str], None], run_dag: Callable[..., Any]
) -> None:
    data = tmp_path / "data"
    for folder in ("raw", "lake", "export"):
        (data / folder).mkdir(parents=True)
    for name, rows in FILES.items():
        (data / "raw" / name).write_text(f"id,city,amount,day\n{rows}")
    for name, rows in {"with-currency.csv": WIDER, **TEXTS}.items():
        (data / "raw" / name).write_text(rows)
    connection("lance_default", json.dumps({"conn_type": "lance", "extra": {"base_uri": str(data / "lake")}}))
    names: dict[str, Any] = {"__name__": "how_to"}
    ended, dags = [], []
    texts = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for number, text in enumerate(texts):
        names.pop("dag", None)
        file = tmp_path / f"recipe_{number}.py"  # Airflow looks for the file of a DAG
        file.write_text(text.replace("/data/", f"{data}/"))
        exec(compile(file.read_text(), str(file), "exec"), names)
        dag = names.get("dag")
        if isinstance(dag, DAG):
            dags.append(dag)
            ended.append((dag.dag_id, str(run_dag(dag, logical_date=DAY).state)))
    assert ended == [(name, "success") for name, _ in ended]
    assert len(ended) == "".join(texts).count("with DAG(")
    assert (data / "export" / "large.csv").read_text(encoding="utf-8").count("\n") >= 4
    for name, rows in NEW_FILES.items():
        (data / "raw" / name).write_text(f"id,city,amount,day\n{rows}")
    again = [(dag.dag_id, str(run_dag(dag, logical_date=SECOND_DAY).state)) for dag in dags]
    assert again == ended
    orders = lance.dataset(data / "lake" / "orders.lance")
    orders.validate()
    found = {row["id"]: row for row in orders.to_table().to_pylist()}
    days = [int(day.strftime("%Y%m%d")) for day in (DAY, SECOND_DAY)]
    # The replacement of the second day leaves what the file of that day says, of the shops' rows only those of other days.
    assert sorted(found) == [1, 2, 5, 6, 11, 13, 14, 15, 16, *days]
    assert found[2]["city"] == "Dakar"
    assert orders.metadata == {"comment": "one row an order", "owner": "shop@example.com", "fresh_within": "26h"}
    embedded = lance.dataset(data / "lake" / "texts.lance")
    assert (embedded.count_rows(), embedded.count_rows("embedding IS NULL")) == (3, 0)
    (index,) = embedded.describe_indices()
    assert index.num_rows_indexed == 3, "what came on the second day is in the index, too"
    assert sorted(lance.dataset(data / "lake" / "prices.lance").to_table()["id"].to_pylist()) == days
    assert orders.count_rows("gross IS NULL") == 0, "what came on the second day was computed, too"
