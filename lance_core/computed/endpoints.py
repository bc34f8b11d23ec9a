"""Functions of declared columns that ask an endpoint with OpenAI's interface: vectors of texts, and answers to prompts.

::

    lance_core.declare_column(uri, "vector", function="lance_core.computed.endpoints:Embeddings", inputs=["text"],
                              type=pa.list_(pa.float32(), 1536), arguments={"model": "text-embedding-3-small"},
                              on_error={"429": "retry", "5xx": "retry", "APIConnectionError": "retry", "400": "skip"})
    lance_core.declare_column(uri, "topic", function="lance_core.computed.endpoints:Completions", inputs=["text"],
                              type=pa.string(), batch_size=1, deterministic=False,
                              arguments={"model": "gpt-5-mini", "prompt": "The topic of this text, one word: $text"})

The endpoint and its key are those of the process (`OPENAI_BASE_URL`, `OPENAI_API_KEY`), never of the table: a declaration
that somebody else wrote cannot send a key elsewhere. What the client would try again by itself, the declaration's `on_error`
does, which is paced, counted and waits as long as the endpoint asks for. A redirect is an error for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from string import Template
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from lance_core.computed.limits import Computed
from lance_core.errors import InputError
from lance_core.io.waiting import answered

T = TypeVar("T")

_BYTES_PER_TOKEN = 4
"""Of English; what `tokens` says bounds a call, and what was spent is as the endpoint tells it."""


class EndpointAnswerError(RuntimeError):
    """An endpoint answered what is no answer to what it was asked."""


class _Endpoint:
    """A client of one model.

    `usd_per_million_tokens`: of a subclass that wants "usd" among what it spends. It is no argument, because another price
    is no other definition.
    """

    usd_per_million_tokens: ClassVar[float] = 0.0

    def __init__(self, model: str) -> None:
        self._model = model
        self._client: Any = None

    def setup(self) -> None:
        """Make the client. InputError without the package `openai`, or without a key."""
        try:
            import openai
        except ImportError as error:
            raise InputError(
                f"{type(self).__name__} needs the package openai: {error}",
                cure="Install the extra: pip install 'airflow-provider-lance[openai]'.",
            ) from error
        try:
            self._client = openai.OpenAI(max_retries=0, http_client=openai.DefaultHttpxClient(follow_redirects=False))
        except openai.OpenAIError as error:
            raise InputError(
                f"{type(self).__name__} has no key for its endpoint",
                cure="Set OPENAI_API_KEY where the function runs, to any text for an endpoint that takes none.",
            ) from error

    def close(self) -> None:
        """Close the client's connections."""
        if self._client is not None:
            self._client.close()

    def _asked(self, request: Callable[[], T]) -> T:
        """The answer to a request, within `LANCE_ANSWER_SECONDS`. Raises the client's errors, StoreError for silence."""
        return answered(request, by="the endpoint")

    def _spent(self, answer: Any) -> Mapping[str, float]:
        tokens = getattr(getattr(answer, "usage", None), "total_tokens", None) or 0
        price = {"usd": tokens * self.usd_per_million_tokens / 1e6} if self.usd_per_million_tokens else {}
        return {"requests": 1, "tokens": tokens, **price}


class Embeddings(_Endpoint):
    """The vector of a text, one request for each call. A null has none; an empty text is asked about, as any other.

    `model`: its name. `dimensions`: of the vectors, where the model has a choice. The only input is the text.

    >>> Embeddings(model="m").tokens(pa.RecordBatch.from_pydict({"text": ["four words of text", None]}))
    [5, 0]
    """

    def __init__(self, *, model: str, dimensions: int | None = None) -> None:
        super().__init__(model)
        self._more = {} if dimensions is None else {"dimensions": dimensions}

    def __call__(self, batch: pa.RecordBatch) -> Computed:
        """Vectors as lists of floats. InputError for other inputs, EndpointAnswerError, and the client's errors."""
        texts = self._texts(batch)
        given = [text for text in texts if text is not None]
        if not given:
            return Computed(pa.nulls(len(texts)))
        answer = self._asked(
            lambda: self._client.embeddings.create(model=self._model, input=given, encoding_format="float", **self._more)
        )
        vectors = {item.index: item.embedding for item in answer.data}
        if vectors.keys() != set(range(len(given))) or len({len(vector) for vector in vectors.values()}) != 1:
            raise EndpointAnswerError(f"{self._model} answered {len(answer.data)} vectors to {len(given)} texts")
        in_order = (vectors[number] for number in range(len(given)))
        return Computed([None if text is None else next(in_order) for text in texts], spent=self._spent(answer))

    def tokens(self, batch: pa.RecordBatch) -> list[int]:
        """About how many tokens each text has."""
        return [_about(text) for text in self._texts(batch)]

    def _texts(self, batch: pa.RecordBatch) -> list[str | None]:
        if batch.num_columns != 1:
            raise InputError(f"Embeddings reads one column, got {batch.schema.names}", cure="Declare it with one input.")
        texts: list[str | None] = batch.column(0).to_pylist()
        wrong = next((text for text in texts if text is not None and not isinstance(text, str)), None)
        if wrong is not None:
            raise InputError(f"Embeddings reads texts, got {type(wrong).__name__} in {batch.schema.names[0]!r}")
        return texts


class Completions(_Endpoint):
    """A model's answer to a prompt, one request for each row: declare it with `batch_size=1`, so that an answer is kept when
    the next request fails, and let `concurrency` ask for several rows at once.

    `model`: its name. `prompt`: a text with `$column` for each input, `$$` for a dollar. `system`: what comes before it.
    `max_tokens`: of the answer. `temperature`: 0 unless given; None for models that take none. A row with a null input, or
    whose answer is empty, has none. Answers differ from call to call: declare it with `deterministic=False`.
    """

    def __init__(
        self, *, model: str, prompt: str, system: str = "", max_tokens: int | None = None, temperature: float | None = 0.0
    ) -> None:
        super().__init__(model)
        self._prompt, self._system = Template(prompt), system
        more = {"max_completion_tokens": max_tokens, "temperature": temperature}
        self._more = {name: value for name, value in more.items() if value is not None}

    def __call__(self, batch: pa.RecordBatch) -> Computed:
        """The answer, as a list of one text. InputError for more rows or a prompt that names others, and client's errors."""
        if batch.num_rows != 1:
            raise InputError(f"Completions takes one row a call, got {batch.num_rows}", cure="Declare it with batch_size=1.")
        (prompt,) = self._prompts(batch)
        if prompt is None:
            return Computed([None])
        system = [{"role": "system", "content": self._system}] if self._system else []
        messages = [*system, {"role": "user", "content": prompt}]
        answer = self._asked(
            lambda: self._client.chat.completions.create(model=self._model, messages=messages, **self._more)
        )
        if len(answer.choices) != 1:
            raise EndpointAnswerError(f"{self._model} answered {len(answer.choices)} choices to one prompt")
        return Computed([answer.choices[0].message.content or None], spent=self._spent(answer))

    def tokens(self, batch: pa.RecordBatch) -> list[int]:
        """About how many tokens each prompt has."""
        return [_about(None if prompt is None else self._system + prompt) for prompt in self._prompts(batch)]

    def _prompts(self, batch: pa.RecordBatch) -> list[str | None]:
        try:
            return [
                None if None in row.values() else self._prompt.substitute({name: str(value) for name, value in row.items()})
                for row in batch.to_pylist()
            ]
        except (KeyError, ValueError) as error:
            raise InputError(
                f"the prompt cannot be made of {batch.schema.names}: {type(error).__name__}: {error}",
                cure="Name inputs as $name or ${name}, and write $$ for a dollar.",
            ) from error


def _about(text: str | None) -> int:
    return 0 if text is None else len(text.encode()) // _BYTES_PER_TOKEN + 1
