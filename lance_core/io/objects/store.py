"""A folder of a bucket behind the store protocol, through obstore.

::

    get, get_ranges     one GET each, ranges of one call at once        no HEAD before any of them
    open_writer         one PUT, or a multipart upload whose parts are sent side by side
    delete_many         1,000 names a request where the cloud has such a request
    put_if_absent       PUT with If-None-Match: * (ifGenerationMatch=0)

Requests are repeated here, as with every engine: waits, deadline and the line in the log are `remote.errors`'. Of the two
clients, the one that never repeats sends them. Only further pages of listings and multipart uploads, inside of which nobody
else can repeat a request, go by the client that does. When the reply of a conditional put was lost, the second try finds its
own object and calls it somebody else's: "exists" then means that what is there is compared with what was sent.

Streaming a new object: one request when it is small, otherwise parts that are sent in parallel.

::

    write 3 MiB, close            one PUT
    write 80 MiB, close           create upload, 8 parts at once, complete
    write 80 MiB, abort           the upload is withdrawn; nobody ever sees the object

A writer holds at most the part it fills and those under way, so its memory is bounded whatever is written.

What obstore's errors were told by a store; `io.answers` says what that means.

::

    Generic S3 error: ... status code: 400 Bad Request: <?xml ...><Code>ExpiredToken</Code><Message>The ...</Message>
    Generic S3 error: DeleteObjects request failed for key a/b: Access Denied (code: AccessDenied)
    Generic S3 error: ... HTTP error: error sending request

The text is all there is: the code, the status and the message are read out of it, and the document around them, like what
only the engine needs, does not reach the user.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import unescape
from itertools import islice, pairwise
from typing import Any, TypeVar

import obstore
import obstore.exceptions as theirs

from lance_core.errors import AlreadyExistsError, CorruptFileError, LanceError, NotFoundError, PreconditionError, StoreError
from lance_core.fetch import Buffer, ByteRange
from lance_core.io.abilities import DeletesMany, ListsInOrder
from lance_core.io.answers import NoAnswerError, StoreReply, TransientError, error_of
from lance_core.io.limits import NO_LIMIT, ListingBound, check_size, limit_of
from lance_core.io.objects.connect import Clients, is_sent_elsewhere
from lance_core.io.paths import checked_path, checked_prefix, is_unfinished
from lance_core.io.pool import in_io_pool, io_pool
from lance_core.io.ranges import refuse_beyond
from lance_core.io.remote.errors import Redactor, Retries, put_settled, retrying
from lance_core.io.remote.probes import Probes
from lance_core.io.store import StoreEntry, plain_tag
from lance_core.io.threads import settled
from lance_core.io.waiting import attended
from lance_core.shortage import is_shortage

T = TypeVar("T")

PAGE = 1000
"""Names of a listing that come in one answer."""
_CLIENT_RANGES = 10
"""Ranges of one call that the client itself asks for at once; more of them wait for one another."""
_SMALL_RANGES = 4 << 20
"""Bytes of one call that are not worth a thread for each range: what is waited for is the store."""


class ObjectStore(DeletesMany, ListsInOrder):
    """A folder of a bucket. `place` names the bucket for what is remembered of it."""

    is_local = False
    is_wide = True

    def __init__(
        self,
        connect: Callable[[], Clients],
        *,
        folder: str,
        uri: str,
        place: tuple[str, ...],
        probes: Probes,
        redact: Redactor,
        retries: Retries,
        is_sorted: bool = True,
        renews: bool = True,
    ) -> None:
        self._connect = connect
        self._folder = folder
        self._uri = uri
        self._place = place
        self._probes = probes
        self._redact = redact
        self._retries = retries
        self._is_sorted = is_sorted
        self._renews = renews

    def __repr__(self) -> str:
        return f"ObjectStore({self._uri!r})"

    @property
    def uri(self) -> str:
        """The uri as it was given; credentials never were part of it."""
        return self._uri

    @property
    def has_put_if_absent(self) -> bool:
        """Whether the store's conditional put is real. Behind a custom endpoint this is tried out, once per process."""
        return self._probes.is_conditional(self._place, self._try_out)

    @property
    def lists_in_order(self) -> bool:
        """All but the directory buckets of S3 do."""
        return self._is_sorted

    def get(self, path: str) -> Buffer:
        """A whole object, one request, if it is not larger than its kind may be."""
        return self._whole(path, most=limit_of(path))

    def _whole(self, path: str, *, most: int) -> Buffer:
        full = self._full(path)

        def read(client: Any) -> Buffer:
            answer = obstore.get(client, full)
            # Before the body is awaited: memory is taken by what the store claims.
            check_size(path, int(answer.meta["size"]), most=most, uri=self._uri)
            return memoryview(answer.bytes())

        return self._again(path, read)

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        """One request per range, all at once."""
        full = self._full(path)
        wanted = [item for item in ranges if item.end > item.start]
        if any(item.start < 0 for item in wanted):
            raise CorruptFileError(f"{path!r}: a requested range begins before the file")
        try:
            found = self._fetch(path, full, wanted)
        except NotFoundError:
            raise
        except StoreError:
            refuse_beyond(path, wanted, size=self.size(path), uri=self._uri)
            raise
        if any(len(data) != item.size for data, item in zip(found, wanted, strict=True)):
            refuse_beyond(path, wanted, size=self.size(path), uri=self._uri)
            raise StoreError(f"{path!r}: the store returned fewer bytes than requested", uri=self._uri)
        if len(wanted) == len(ranges):
            return found
        answers: Iterator[Buffer] = iter(found)
        return [next(answers) if item.end > item.start else b"" for item in ranges]

    def size(self, path: str) -> int:
        """Bytes in an object."""
        full = self._full(path)
        return self._again(path, lambda client: int(obstore.head(client, full)["size"]))

    def stat(self, path: str) -> StoreEntry:
        """One request, which tells the object's tag."""
        full = self._full(path)
        found = self._again(path, lambda client: obstore.head(client, full))
        return StoreEntry(path, int(found["size"]), found["last_modified"].timestamp(), plain_tag(found.get("e_tag")))

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """One request."""
        full = self._full(path)
        sent = _contiguous(data)
        self._again(path, lambda client: obstore.put(client, full, sent, use_multipart=False))

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """The store's conditional put; after a failure that may have been only the reply's, what is there is compared."""
        self._full(path)
        if not self.has_put_if_absent:
            raise PreconditionError(
                f"{self._uri}: this store has no conditional put",
                uri=self._uri,
                cure="Use a store with conditional put, a newer release of its server, or an external manifest store.",
            )
        sent = _contiguous(data)
        put_settled(lambda: self._create(path, sent), lambda: self.get(path), sent, self._retries)

    def copy_if_absent(self, source: str, target: str) -> None:
        """Read, then conditional put."""
        self.put_if_absent(target, self._whole(source, most=NO_LIMIT))

    def open_writer(self, path: str) -> ObjectWriter:
        """Small objects go in one request, larger ones in parts that are sent side by side."""
        return ObjectWriter(lambda: self._client, self._full(path), typed=lambda: self._typed(path))

    def list(self, prefix: str) -> Iterator[StoreEntry]:
        """Objects below a folder, a page at a time."""
        return (entry for entry in self._entries(prefix) if not is_unfinished(entry.path))

    def list_unfinished(self, prefix: str) -> Iterator[StoreEntry]:
        """Nothing: an upload that has not ended is no object, and the bucket's lifecycle rules end it."""
        checked_prefix(prefix)
        return iter(())

    def list_names(self, folder: str) -> Sequence[str]:
        """Names directly in a folder."""
        full = self._full_prefix(folder)
        found = self._again(folder, lambda client: obstore.list_with_delimiter(client, prefix=full))["objects"]
        names = [str(item["path"]).rsplit("/", 1)[-1] for item in found if item["path"] != full]
        return [name for name in names if not is_unfinished(name)]

    def list_folders(self, folder: str) -> Sequence[str]:
        """Names of the folders directly in a folder, sorted; [] when there is no such folder."""
        full = self._full_prefix(folder)
        found = self._again(folder, lambda client: obstore.list_with_delimiter(client, prefix=full))["common_prefixes"]
        return sorted(str(path).rstrip("/").rsplit("/", 1)[-1] for path in found)

    def first_entries(self, folder: str) -> tuple[Sequence[StoreEntry], bool]:
        """The first objects of a folder without sub-folders, in the order of their names, and whether that is all."""
        entries = self.list(f"{folder.rstrip('/')}/")
        found = [*islice(entries, PAGE)] if self._is_sorted else [*entries]
        return found, not self._is_sorted or len(found) < PAGE

    def names_after(self, folder: str, name: str, *, most: int | None = None) -> Sequence[str]:
        """The names of a folder without sub-folders behind `name`; the first `most` of them."""
        if not self._is_sorted:
            return sorted(item for item in self.list_names(folder) if item > name)[:most]
        return [*islice(self._names(folder, name), most)]

    def delete(self, path: str) -> None:
        """Remove an object."""
        self.delete_many([path])

    def delete_many(self, paths: Iterable[str]) -> None:
        """Remove objects, many a request; killed, any of them may be left."""
        full = [self._full(path) for path in paths]
        pages = [full[start : start + PAGE] for start in range(0, len(full), PAGE)]
        if len(pages) < 2 or in_io_pool():
            for page in pages:
                self._delete(page)
            return
        for done in [io_pool(self._uri).submit(self._delete, page) for page in pages]:
            done.result()

    def child(self, path: str) -> ObjectStore:
        """A store rooted at a sub-folder, over the same connections."""
        below = checked_path(path.rstrip("/"))
        return ObjectStore(
            self._connect,
            folder=f"{self._folder}{below}/",
            uri=f"{self._uri}/{below}",
            place=self._place,
            probes=self._probes,
            redact=self._redact,
            retries=self._retries,
            is_sorted=self._is_sorted,
            renews=self._renews,
        )

    @property
    def _client(self) -> Any:
        return self._connect().patient

    def _create(self, path: str, data: Buffer) -> None:
        with self._typed(path):
            client, full = self._connect().once, self._full(path)
            attended(lambda: obstore.put(client, full, data, mode="create", use_multipart=False))

    def _fetch(self, path: str, full: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        if not ranges:
            return []
        if len(ranges) > 1 and (in_io_pool() or _is_one_wait(ranges)):
            starts, ends = [item.start for item in ranges], [item.end for item in ranges]

            def read_all(client: Any) -> Sequence[Buffer]:
                return [memoryview(data) for data in obstore.get_ranges(client, full, starts=starts, ends=ends, coalesce=0)]

            return self._again(path, read_all)

        def read(item: ByteRange) -> Buffer:
            return self._again(
                path, lambda client: memoryview(obstore.get_range(client, full, start=item.start, end=item.end))
            )

        # The calling thread waits for one of them: the others are not delayed by it.
        others = [io_pool(self._uri).submit(read, item) for item in ranges[1:]]
        try:
            first = read(ranges[0])
        except Exception:
            settled(others)
            raise
        settled(others)
        return [first, *(other.result() for other in others)]

    def _entries(self, prefix: str) -> Iterator[StoreEntry]:
        folder = self._full_prefix(prefix)
        size = len(self._folder)
        for item in self._items(prefix, folder, None):
            if item["path"] != folder:  # an empty object that stands for the folder
                modified = item["last_modified"].timestamp()
                yield StoreEntry(item["path"][size:], item["size"], modified, plain_tag(item.get("e_tag")))

    def _names(self, folder: str, after: str | None) -> Iterator[str]:
        full = self._full_prefix(folder)
        for item in self._items(folder, full, None if after is None else f"{full}/{after}"):
            name = item["path"][len(full or "") + 1 :]
            if name and "/" not in name and not is_unfinished(name):
                yield name

    def _items(self, path: str, prefix: str | None, offset: str | None) -> Iterator[Any]:
        """What a listing finds. A page that fails is requested again; where names are in no order, all of them are."""
        if not self._is_sorted:
            yield from retrying(lambda: self._unsorted_items(path, prefix), self._retries)
            return
        pages, bound = _Pages(prefix, offset), ListingBound(path, uri=self._uri)
        while more := self._again(path, pages.next):
            bound.count(len(more))
            if pages.end is not None:
                bound.goes_on(pages.end, str(more[0]["path"]))
            pages.end = str(more[-1]["path"])
            yield from more

    def _unsorted_items(self, path: str, prefix: str | None) -> Sequence[Any]:
        found: list[Any] = []
        bound = ListingBound(path, uri=self._uri)
        with self._typed(path):
            pages = iter(obstore.list(self._client, prefix=prefix, chunk_size=PAGE))
            while (page := attended(lambda: next(pages, None))) is not None:
                bound.count(len(page))
                found.extend(page)
        return found

    def _delete(self, page: Sequence[str]) -> None:
        try:
            self._again(page[0], lambda client: obstore.delete(client, page[0] if len(page) == 1 else [*page]))
        except NotFoundError:
            for path in page if len(page) > 1 else ():
                self._delete([path])

    def _full(self, path: str) -> str:
        return self._folder + checked_path(path)

    def _full_prefix(self, prefix: str) -> str | None:
        return (self._folder + checked_prefix(prefix)).rstrip("/") or None

    def _try_out(self) -> bool:
        path = f"_lance_core/probe/{secrets.token_hex(8)}"
        retrying(lambda: self._create(path, b"1"), self._retries)
        try:
            retrying(lambda: self._create(path, b"2"), self._retries)
            return False
        except AlreadyExistsError:
            return True
        finally:
            self.delete(path)

    def _again(self, path: str, action: Callable[[Any], T]) -> T:
        """A request that may be repeated."""

        def once() -> T:
            with self._typed(path):
                client = self._connect().once
                return attended(lambda: action(client))

        return retrying(once, self._retries)

    def _typed(self, path: str) -> Any:
        return typed(path, uri=self._uri, redact=self._redact, renews=self._renews)


class _Pages:
    """The pages of a listing that is in order, each of which may be requested again. `end`: the last name that was used."""

    def __init__(self, prefix: str | None, end: str | None) -> None:
        self.end = end
        self._prefix, self._is_over = prefix, False
        self._rest: Iterator[Sequence[Any]] | None = None

    def next(self, client: Any) -> Sequence[Any]:
        """The page behind `end`; [] when there is none."""
        if self._is_over:
            return []
        rest, self._rest = self._rest, None
        if rest is None:
            rest = iter(obstore.list(client, prefix=self._prefix, offset=self.end, chunk_size=PAGE))
        page: Sequence[Any] = next(rest, [])
        self._rest, self._is_over = rest, len(page) < PAGE
        return page


def _contiguous(data: Buffer) -> Buffer:
    if isinstance(data, memoryview) and not data.c_contiguous:
        return bytes(data)
    return data


def _is_one_wait(ranges: Sequence[ByteRange]) -> bool:
    """Whether the client asks for each of them, all at once, and they are so small that one thread may wait for all."""
    if len(ranges) > _CLIENT_RANGES or sum(item.size for item in ranges) > _SMALL_RANGES:
        return False
    return all(before.end < after.start for before, after in pairwise(ranges))  # the client joins those that touch


PART_SIZE = 10 << 20
"""Bytes of a part, and of the largest object that goes in one request. S3 takes 10,000 parts: 100 GB an object."""
_PARTS_AT_ONCE = 8


class ObjectWriter:
    """An object being written.

    The client repeats what got no answer, but nothing whose answer ended in the middle: of the start of an upload, before
    which all bytes are still here, and of its end, which is known by what is there then (names are written once).
    """

    def __init__(
        self, connect: Callable[[], Any], full: str, *, typed: Callable[[], contextlib.AbstractContextManager[None]]
    ) -> None:
        self._connect = connect
        self._full = full
        self._typed = typed
        self._first: list[bytes] | None = []
        self._size = 0
        self._failure: LanceError | None = None
        self._upload: Any = None
        with typed():
            self._open()

    def _open(self) -> None:
        self._upload = obstore.open_writer(
            self._connect(), self._full, buffer_size=PART_SIZE, max_concurrency=_PARTS_AT_ONCE
        )

    def write(self, data: Buffer) -> None:
        """Append bytes; waits only while all parts that may be under way are."""
        if self._upload is None:
            raise self._failure or StoreError(f"{self._full!r} is already closed", operation="write")
        self._size += memoryview(data).nbytes
        try:
            self._send(data)
        except LanceError as error:
            self._failure = error
            self.abort()
            raise

    def _send(self, data: Buffer) -> None:
        if self._first is None:
            self._pass_on(data)
            return
        try:
            self._pass_on(data)
        except TransientError:
            _give_up(self._upload)
            with self._typed():
                self._open()
            for piece in (*self._first, data):
                self._pass_on(piece)
        if self._size > PART_SIZE:
            self._first = None  # the upload has begun
        else:
            self._first.append(bytes(data))

    def _pass_on(self, data: Buffer) -> None:
        with self._typed():
            upload = self._upload
            attended(lambda: upload.write(data))

    def close(self) -> None:
        """Publish the object. Closing twice is harmless. Raises what a write has raised before."""
        if self._failure is not None:
            raise self._failure
        if self._upload is None:
            return
        upload, self._upload = self._upload, None
        try:
            with self._typed():
                attended(upload.close)
        except (TransientError, NotFoundError) as error:
            # Not found: the client withdrew the upload, which had ended.
            _give_up(upload)
            if not self._is_there():
                self._failure = NoAnswerError(f"{self._full!r}: the upload ended without an answer: {error}")
                raise self._failure from None
        except BaseException:
            _give_up(upload)
            raise

    def _is_there(self) -> bool:
        try:
            with self._typed():
                client = self._connect()
                return bool(attended(lambda: obstore.head(client, self._full))["size"] == self._size)
        except LanceError:
            return False

    def abort(self) -> None:
        """Give the bytes up; a no-op after `close`."""
        if self._upload is not None:
            upload, self._upload = self._upload, None
            _give_up(upload)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.abort()


def _give_up(upload: Any) -> None:
    # Leaving the block by an error is how a writer of obstore is made to end its upload without an object.
    with contextlib.suppress(Exception):
        upload.__exit__(StoreError, StoreError("given up"), None)


_STATUS = re.compile(r"status code: (\d{3})")
_CODES = (re.compile(r"<Code>([^<]{1,200})</Code>"), re.compile(r"\(code: (\w{1,200})\)"))
_MESSAGE = re.compile(r"<Message>([^<]{1,1000})</Message>")
_DOCUMENT = re.compile(r":?\s*(?:\ufeff|ï»¿)?<[?!A-Za-z].*", re.DOTALL)
_DEBUG = re.compile(r"\n+Debug source:.*", re.DOTALL)
_QUERY = re.compile(r"(https?://[^\s?]+)\?\S*")
_NOISE = re.compile(
    r"Generic \w+ error: |Error performing [\w ]+ request: (?=Error performing)|, max_retries: \d+, retry_timeout: \S+"
)
_NO_ANSWER = f"credential provider: {StoreError.__name__}: "
"""obstore takes each error of a provider for a refusal; this one is that nobody answered."""
_CUT_OFF = (
    "error sending request",
    "request or response body error",
    "error decoding response body",
    "timed out",
    "connection",
)


@contextlib.contextmanager
def typed(path: str, *, uri: str, redact: Callable[[str], str], renews: bool = True) -> Iterator[None]:
    """Turn whatever obstore raises into an error of ours; the original is not chained, because it may hold secrets."""
    failure: LanceError | None = None
    try:
        yield
    except LanceError:
        raise
    except Exception as error:
        if is_shortage(error):
            raise
        failure = as_store_error(error, path, uri=uri, redact=redact, renews=renews)
    if failure is not None:
        raise failure from None


def as_store_error(
    error: Exception, path: str, *, uri: str, redact: Callable[[str], str], renews: bool = True
) -> LanceError:
    """The error of ours that says the same."""
    return error_of(_answer(error), path, uri=uri, redact=redact, renews=renews)


def _answer(error: Exception) -> StoreReply:
    if is_sent_elsewhere(str(error)):
        return StoreReply("the store redirects to another host", status=307)
    text = _DEBUG.sub("", str(error))
    code = next((found[1] for found in (pattern.search(text) for pattern in _CODES) if found), "")
    given = _STATUS.search(text)
    status = int(given[1]) if given else _status_of(error)
    message = _shown(text, error)
    lowered = message.lower()
    is_cut_off = _NO_ANSWER in message or any(word in lowered for word in _CUT_OFF)
    return StoreReply(message, code, 0 if _NO_ANSWER in message else status, is_cut_off)


def _status_of(error: Exception) -> int:
    """Of the errors that obstore has classes for."""
    return next((status for kind, status in _KINDS if isinstance(error, kind)), 0)


_KINDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], int], ...] = (
    ((theirs.AlreadyExistsError, theirs.PreconditionError), 412),
    (FileNotFoundError, 404),
    (theirs.PermissionDeniedError, 403),
    (theirs.UnauthenticatedError, 401),
)


def _shown(text: str, error: Exception) -> str:
    """One line: what the engine says without its document, and the message that was in it."""
    found = _MESSAGE.search(text)
    short = _NOISE.sub("", _QUERY.sub(r"\1", _DOCUMENT.sub("", text)))
    kind = "" if type(error) is theirs.GenericError else f"{type(error).__name__}: "
    told = [" ".join(short.split()), " ".join(unescape(found[1]).split()) if found else ""]
    return kind + ": ".join(part for part in told if part)
