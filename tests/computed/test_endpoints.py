"""Columns that an endpoint with OpenAI's interface computes: asked in batches, paid once, refused rows remembered."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import openai
import pyarrow as pa
import pytest

import lance_core
from lance_core.computed.endpoints import Completions, Embeddings, EndpointAnswerError
from lance_core.errors import InputError, StoreError
from tests.computed.openai_server import Endpoint, openai_server, vector_of

EMBEDDINGS, COMPLETIONS = "lance_core.computed.endpoints:Embeddings", "lance_core.computed.endpoints:Completions"
POLICY = {"429": "retry", "5xx": "retry", "400": "skip"}
TEXTS = ["one", None, "", "four", "fünf"]
VECTOR = pa.list_(pa.float32(), 4)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with openai_server() as made:
        monkeypatch.setenv("OPENAI_BASE_URL", made.uri)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-process")
        yield made


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(len(TEXTS)), "text": TEXTS}), place)
    return place


def declare(uri: str, function: str = EMBEDDINGS, **more: Any) -> None:
    given: dict[str, Any] = {"type": VECTOR, "arguments": {"model": "small"}, "on_error": POLICY, **more}
    lance_core.declare_column(uri, "made", function=function, inputs=["text"], functions=[function], **given)


def refresh(uri: str, function: str = EMBEDDINGS, **more: Any) -> Any:
    return lance_core.refresh_columns(uri, functions=[function], **more)


def values(uri: str) -> list[Any]:
    return lance.dataset(uri).to_table(columns=["id", "made"]).sort_by("id")["made"].to_pylist()


def test_vectors_come_in_one_request_for_each_call_whatever_their_order(uri: str, endpoint: Endpoint) -> None:
    declare(uri, batch_size=3)
    report = refresh(uri)
    assert values(uri) == [None if text is None else vector_of(text) for text in TEXTS]
    assert [body["input"] for body in endpoint.asked] == [["one", ""], ["four", "fünf"]]
    assert (report.spent["made"], report.columns["made"].new) == ({"requests": 2.0, "tokens": 14.0}, 5)
    assert refresh(uri).stale == 0 and len(endpoint.asked) == 2
    assert set(endpoint.keys) == {"Bearer sk-of-the-process"}


def test_calls_are_bounded_by_tokens(uri: str, endpoint: Endpoint) -> None:
    declare(uri, batch_tokens=2, arguments={"model": "small", "dimensions": 3}, type=pa.list_(pa.float32(), 3))
    refresh(uri)
    assert [body["input"] for body in endpoint.asked] == [["one", ""], ["four"], ["fünf"]]
    assert {body["dimensions"] for body in endpoint.asked} == {3}


def test_what_is_refused_for_now_is_asked_again_and_a_bad_row_is_remembered(uri: str, endpoint: Endpoint) -> None:
    declare(uri)
    endpoint.refuses = [429, 503]
    refresh(uri)
    assert len(endpoint.asked) == 3 and values(uri)[0] == vector_of("one")
    lance_core.write_dataset(pa.table({"id": [5], "text": ["bad"]}), uri, mode="append")
    endpoint.refuses = [400]
    report = refresh(uri)
    failed = lance_core.failed_rows(uri, "made")
    assert (report.columns["made"].failed_now, values(uri)[5]) == (1, None)
    assert failed.rows[0].error.startswith("BadRequestError 400") and "secret" not in failed.rows[0].error


def test_an_answer_without_all_vectors_is_none(uri: str, endpoint: Endpoint) -> None:
    declare(uri)
    endpoint.spoils = "yes"
    with pytest.raises(EndpointAnswerError, match="small answered 3 vectors to 4 texts"):
        refresh(uri)
    assert values(uri) == [None] * 5


def test_the_key_does_not_follow_a_redirect(uri: str, endpoint: Endpoint) -> None:
    declare(uri)
    endpoint.refuses = [307]
    with pytest.raises(openai.APIStatusError, match="307"):
        refresh(uri)
    assert len(endpoint.asked) == 1


def test_silence_ends(uri: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(uri)
    monkeypatch.setenv("LANCE_ANSWER_SECONDS", "0.3")
    endpoint.silent = threading.Event()
    with pytest.raises(StoreError, match=r"the endpoint has not answered for 0\.3 s"):
        refresh(uri)
    endpoint.silent.set()


def test_a_prompt_for_each_row_and_the_budget_of_tokens(uri: str, endpoint: Endpoint) -> None:
    arguments = {"model": "chat", "prompt": "say ${text} for $$1", "system": "be short", "max_tokens": 5}
    declare(uri, COMPLETIONS, type=pa.string(), arguments=arguments, batch_size=1, deterministic=False)
    report = refresh(uri, COMPLETIONS, max_spent={"tokens": 14})
    assert (report.stopped, report.spent["made"]["requests"]) == ("tokens", 2.0)
    assert refresh(uri, COMPLETIONS, concurrency=2).stopped == ""
    assert values(uri) == [None if text is None else f"SAY {text.upper()} FOR $1" for text in TEXTS]
    assert len(endpoint.asked) == 4 and endpoint.asked[0]["messages"][0] == {"role": "system", "content": "be short"}
    assert {body["max_completion_tokens"] for body in endpoint.asked} == {5}


def test_a_subclass_has_a_price(endpoint: Endpoint) -> None:
    class Priced(Embeddings):
        usd_per_million_tokens = 2.0

    made = Priced(model="small")
    made.setup()
    assert made(pa.RecordBatch.from_pydict({"text": ["a"]})).spent == {"requests": 1, "tokens": 7, "usd": 14e-6}
    made.close()


def test_wrong_use_is_told(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    two = pa.RecordBatch.from_pydict({"a": ["x"], "b": ["y"]})
    with pytest.raises(InputError, match="reads one column, got"):
        Embeddings(model="m")(two)
    with pytest.raises(InputError, match="reads texts, got int"):
        Embeddings(model="m")(pa.RecordBatch.from_pydict({"a": [1]}))
    with pytest.raises(InputError, match=r"cannot be made of \['a', 'b'\]: KeyError: 'c'"):
        Completions(model="m", prompt="$c")(two)
    with pytest.raises(InputError, match="one row a call, got 2"):
        Completions(model="m", prompt="$a")(pa.RecordBatch.from_pydict({"a": ["x", "y"]}))
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(InputError, match="has no key for its endpoint"):
        Embeddings(model="m").setup()


def test_an_objects_attributes_are_no_part_of_a_prompt() -> None:
    """A table's declaration has the prompt: it reaches the inputs as texts, and nothing else."""
    batch = pa.RecordBatch.from_pydict({"a": ["x"]})
    for prompt in ("${a.__class__}", "{a.__class__} $", "$a.__class__"):
        try:
            told = Completions(model="m", prompt=prompt)._prompts(batch)
        except InputError:
            continue
        assert told == ["x.__class__"]
