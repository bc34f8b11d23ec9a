"""The next manifest during its construction: a transaction applied to the newest version.

    previous (version 4, next fragment id 7) + Append([fragment id 0, fragment id 0])
        -> version 5 with fragments 7 and 8, max_fragment_id 8

Pure: no store, no clock, no randomness. Operations change the draft through its verbs; `build` ends it. (FORMAT D.5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lance_core.errors import InputError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.index import IndexMetadata, RewrittenIndex
from lance_core.format.manifest import FLAG_DATA_OVERLAYS, FLAG_DELETION_FILES, BasePath, Manifest, WriterVersion
from lance_core.format.schema import Field, Schema, contradiction, unusable_name, with_metadata
from lance_core.format.version import DEFAULT_VERSION, FileVersion
from lance_core.table import coverage, edits, identity
from lance_core.table.features import has_mixed_versions, next_flags

_FLAGGED = {FLAG_DELETION_FILES: "deletion_file", FLAG_DATA_OVERLAYS: "overlays"}


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What a table is born with; of these, later commits heed an Overwrite's `data_storage_version`."""

    data_storage_version: str | None = None
    stable_row_ids: bool = False
    no_transaction_file: bool = False
    v1_manifest_names: bool = False


class ManifestDraft:
    """A manifest under construction. Verbs take and give nouns; nothing outside changes."""

    def __init__(self, previous: Manifest | None, *, options: TableOptions, source: Manifest | None = None) -> None:
        self.previous = previous
        self.source = source
        self.version = 1 if previous is None else previous.version + 1
        self.schema = Schema(()) if previous is None else previous.schema
        self.fragments = FragmentList.of(() if previous is None else previous.fragments)
        self.indices: list[IndexMetadata] = [] if previous is None else list(previous.indices)
        self.config: dict[str, str] = {} if previous is None else dict(previous.config)
        self.table_metadata: dict[str, str] = {} if previous is None else dict(previous.table_metadata)
        self.base_paths: list[BasePath] = [] if previous is None else list(previous.base_paths)
        # Old releases did not write the mark down.
        mark = None if previous is None else previous.max_fragment_id
        self.max_fragment_id = max(self.fragments.ids, default=None) if mark is None else mark
        self.next_row_id = 0 if previous is None else previous.next_row_id
        self.max_allocated_field_id = None if previous is None else previous.max_allocated_field_id
        self.branch = None if previous is None else previous.branch
        self.data_storage_version = None if previous is None else previous.data_storage_version
        self.uses_stable_row_ids = options.stable_row_ids if previous is None else previous.uses_stable_row_ids
        self._options = options
        self._incoming: list[FragmentList] = []

    # -- fragments

    def current(self, fragment_ids: Iterable[int]) -> dict[int, Fragment]:
        """The named fragments as they are now; those that are gone are left out."""
        return self.fragments.pick(frozenset(fragment_ids))

    def clear(self) -> None:
        """No fragments, no indices; high-water marks stay."""
        self.fragments = FragmentList.of(())
        self.indices = []
        self.schema = Schema(())
        self.data_storage_version = self._options.data_storage_version or self.data_storage_version

    def _with_id(self, fragment: Fragment) -> Fragment:
        """Id 0 asks for the next free one. A table's very first fragment is called 0, so that one is taken as it comes."""
        if fragment.id == 0:
            fragment = replace(fragment, id=0 if self.max_fragment_id is None else self.max_fragment_id + 1)
        self.max_fragment_id = max(fragment.id, -1 if self.max_fragment_id is None else self.max_fragment_id)
        return fragment

    def add_new(self, fragments: Sequence[Fragment]) -> None:
        """Add fragments of rows the table never had; they get ids, row ids and versions."""
        if isinstance(fragments, FragmentList) and not self.uses_stable_row_ids and self._add_bytes(fragments):
            return
        added = []
        for fragment in map(self._with_id, fragments):
            if self.uses_stable_row_ids:
                fragment, self.next_row_id = identity.with_row_ids(fragment, next_row_id=self.next_row_id)
                fragment = identity.with_new_versions(fragment, self.version)
            added.append(fragment)
        self._insert(added)

    def _add_bytes(self, fragments: FragmentList) -> bool:
        """Whether they could be added as the bytes that they are."""
        first = 0 if self.max_fragment_id is None else self.max_fragment_id + 1
        found = fragments.numbered(first)
        if found is None:
            return False
        added, samples = found
        for sample in samples:
            edits.check_fragment(sample)
        self.max_fragment_id = first + len(added) - 1
        self.fragments = self.fragments.edited(appended=added)
        self._incoming.append(added)
        return True

    def add_moved(
        self, fragments: Sequence[Fragment], sources: Mapping[int, Fragment]
    ) -> tuple[list[Fragment], list[Fragment]]:
        """Add fragments of which the first rows may have moved here from `sources`.

        Gives back all of them, and those in which every row is a moved one.
        """
        added, pure = [], []
        for fragment in map(self._with_id, fragments):
            if self.uses_stable_row_ids:
                num_moved = identity.num_row_ids(fragment)
                if num_moved == fragment.physical_rows:
                    pure.append(fragment)
                fragment, self.next_row_id = identity.with_row_ids(fragment, next_row_id=self.next_row_id)
                fragment = identity.with_moved_versions(
                    fragment, num_moved=num_moved, sources=sources.values(), version=self.version
                )
            added.append(fragment)
        self._insert(added)
        return added, pure

    def _insert(self, fragments: Sequence[Fragment]) -> None:
        taken = set(self.fragments.ids).intersection(item.id for item in fragments)
        if taken or len({item.id for item in fragments}) != len(fragments):
            raise InputError(f"fragment id(s) {sorted(taken) or 'of new fragments'} would occur twice", cure="Leave them 0.")
        self.fragments = self.fragments.edited(appended=[edits.check_fragment(item) for item in fragments])
        self._incoming.append(FragmentList.of(fragments))

    def replace(self, fragments: Sequence[Fragment]) -> None:
        """Exchange fragments for those with the same id; ids the table does not have are an error."""
        if not fragments:
            return
        now = self.current(item.id for item in fragments)
        changes = {item.id: edits.changed_fragment(now.get(item.id), item) for item in fragments}
        missing = sorted(changes.keys() - now.keys())
        if missing:
            raise InputError(f"fragment(s) {missing} are not in the table", cure="Plan again on its newest version.")
        self.fragments = self.fragments.edited(replaced=changes)
        self._incoming.append(FragmentList.of(changes.values()))

    def remove(self, fragment_ids: Iterable[int]) -> None:
        """Drop fragments; ids that are gone already do not matter."""
        gone = frozenset(fragment_ids)
        if gone:
            self.fragments = self.fragments.edited(removed=gone)

    def set_fragments(self, fragments: Sequence[Fragment]) -> None:
        """Replace the whole list. Rows of fragments whose files changed count as updated by this version."""
        before = {item.id: item for item in self.fragments}
        kept = [edits.changed_fragment(before[item.id], item) for item in fragments if item.id in before]
        if len({item.id for item in kept}) != len(kept):
            raise InputError("fragment ids occur twice", cure="Name each fragment of the table once.")
        changed = [item.id for item in kept if item.files != before[item.id].files]
        self.fragments = FragmentList.of(()).edited(appended=kept)
        self._incoming.append(FragmentList.of(kept))
        self.stamp_rows(changed)
        self.add_new([edits.without_dead_files(item) for item in fragments if item.id not in before])

    def stamp_rows(self, fragment_ids: Iterable[int]) -> None:
        """All rows of these fragments count as updated by this version (matters with stable row ids only)."""
        if self.uses_stable_row_ids:
            stamped = [identity.with_updated(item, self.version) for item in self.current(fragment_ids).values()]
            self.replace(stamped)

    def stamp_offsets(self, offsets: Mapping[int, Sequence[int]]) -> None:
        """The rows at these offsets of fragments count as updated by this version."""
        if self.uses_stable_row_ids:
            found = self.current(offsets)
            self.replace([identity.with_updated_offsets(item, offsets[item.id], self.version) for item in found.values()])

    def exchange(self, old: Sequence[Fragment], new: Sequence[Fragment]) -> list[Fragment]:
        """Replace fragments by others that hold the same rows; row identity is taken from the new ones as it is."""
        old_ids = frozenset(item.id for item in old)
        missing = sorted(old_ids - set(self.fragments.ids))
        if missing:
            raise InputError(
                f"fragment(s) {missing} to rewrite are not in the table",
                cure="Plan the compaction again on its newest version.",
            )
        self.remove(old_ids)
        added = [self._with_id(item) for item in new]
        if self.uses_stable_row_ids and not all(identity.is_complete(item) for item in added):
            raise InputError("a rewritten fragment of a table with stable row ids must have the row ids of its rows")
        self._insert(added)
        return added

    def replace_file(self, fragment_id: int, new_file: DataFile) -> None:
        """Swap the file that holds exactly the fields of `new_file`, or add it when no file holds any of them."""
        fragment = self.fragments.get(fragment_id)
        if fragment is None:
            raise InputError(f"fragment {fragment_id}, whose file is to be replaced, is not in the table")
        self.replace([edits.with_file(fragment, new_file)])

    def drop_dead_files(self) -> None:
        """Drop files none of whose fields the schema has any more."""
        live = self.schema.by_id.keys()
        changed = []
        for fragment in self.fragments:
            files = tuple(file for file in fragment.files if not live.isdisjoint(file.fields))
            if len(files) != len(fragment.files):
                changed.append(replace(fragment, files=files))
        self.replace(changed)

    def reserve(self, num_fragments: int) -> None:
        """Set `num_fragments` ids aside."""
        self.max_fragment_id = (0 if self.max_fragment_id is None else self.max_fragment_id) + num_fragments

    # -- schema

    def set_schema(self, schema: Schema) -> None:
        """Replace the schema; the mark of field ids, where there is one, moves up with it.

        A schema without metadata keeps the table's: Merge and Project reach the log without any. InputError for one that
        no reader would open again.
        """
        wrong = contradiction(schema.fields)
        if wrong:
            raise InputError(f"the new schema of the table contradicts itself: {wrong}", cure="Write it with other names.")
        new = {item.name for item in schema.top_level} - {item.name for item in self.schema.top_level}
        for name in sorted(new):
            if why := unusable_name(name):
                raise InputError(why, cure="Drop or rename it before you write.")
        self.schema = schema if schema.metadata else replace(schema, metadata=self.schema.metadata)
        if self.max_allocated_field_id is not None:
            self.max_allocated_field_id = max(self.max_allocated_field_id, schema.max_field_id)

    def field(self, field_id: int) -> Field:
        """A field by id, or InputError."""
        found = self.schema.by_id.get(field_id)
        if found is None:
            raise InputError(f"the schema has no field with id {field_id}")
        return found

    def set_field_metadata(self, field_id: int, metadata: Mapping[str, bytes]) -> None:
        """Replace the metadata of one field, and with them whether it is a part of a key."""
        changed = with_metadata(self.field(field_id), metadata)
        fields = tuple(changed if item.id == field_id else item for item in self.schema.fields)
        self.schema = replace(self.schema, fields=fields)

    # -- indices

    def retain_indices(self) -> None:
        """Drop indices that lost their fields or all their fragments."""
        if self.indices:
            self.indices = coverage.retain_relevant(
                self.indices, field_ids=self.schema.by_id.keys(), fragment_ids=frozenset(self.fragments.ids)
            )

    def prune_fields(self, fragment_ids: Iterable[int], fields: Iterable[int]) -> None:
        """Fragments got new values for fields: indices on those no longer cover them."""
        self.indices = coverage.prune_fields(self.indices, frozenset(fragment_ids), frozenset(fields))

    def extend_coverage(self, added: Iterable[Fragment], sources: Iterable[int], fields: Iterable[int]) -> None:
        """Moved rows stay covered by indices on other fields than those."""
        new_ids = frozenset(item.id for item in added)
        if new_ids:
            self.indices = coverage.extend_coverage(self.indices, new_ids, frozenset(sources), frozenset(fields))

    def indexed_files(self) -> dict[int, dict[int, str]]:
        """fragment id -> field id -> path of the file that holds it, for the fields that any index keys or carries."""
        fields = coverage.fields_of(self.indices)
        return {item.id: edits.files_of(item, fields) for item in self.fragments} if fields else {}

    def prune_changed_files(self, before: Mapping[int, Mapping[int, str]]) -> None:
        """Indices stop covering fragments whose file for an indexed field is not the one it was."""
        if before:
            self.indices = coverage.prune_changed_files(self.indices, before, self.indexed_files())

    def move_coverage(
        self, old_ids: Iterable[int], added: Iterable[Fragment], *, rewritten: frozenset[str], is_deferred: bool
    ) -> None:
        """Old fragments became new ones: segments follow that can. `rewritten`: uuids of those that were translated."""
        old, new, stable = frozenset(old_ids), frozenset(item.id for item in added), self.uses_stable_row_ids
        self.indices = [
            coverage.after_rewrite(
                item, old, new, is_rewritten=item.uuid in rewritten, is_deferred=is_deferred, stable_row_ids=stable
            )
            for item in self.indices
        ]

    def rename_indices(self, rewritten: Sequence[RewrittenIndex]) -> None:
        """Segments whose addresses were translated take their new uuid, details and files."""
        changes = {item.old_id: item for item in rewritten}
        missing = sorted(changes.keys() - {index.uuid for index in self.indices})
        if missing:
            raise InputError(f"index segment(s) {missing} to rewrite are not in the table")
        self.indices = [edits.renamed(index, changes.get(index.uuid)) for index in self.indices]

    # -- other manifests and places

    def add_initial_bases(self, bases: Sequence[BasePath]) -> None:
        """Bases a table is born with."""
        if bases and self.previous is not None:
            raise InputError("base paths can only be registered by the first write", cure="Use UpdateBases.")
        self.add_bases(bases)

    def add_bases(self, bases: Sequence[BasePath]) -> None:
        """Register bases; id 0 takes the next free one."""
        for base in bases:
            for known in self.base_paths:
                if base.clashes_with(known):
                    raise InputError(f"base path {base.name or base.path!r} (id {base.id}) is already registered as {known}")
            next_id = max((known.id for known in self.base_paths), default=0) + 1
            self.base_paths.append(base if base.id else replace(base, id=next_id))

    def restore(self, version: int) -> None:
        """Take everything from `source`, which must be that version; ids already given out stay given out."""
        source = self._source(version)
        self.schema, self.fragments, self.indices = source.schema, FragmentList.of(source.fragments), list(source.indices)
        self.config, self.table_metadata = dict(source.config), dict(source.table_metadata)
        self.base_paths, self.branch = list(source.base_paths), source.branch
        self.data_storage_version, self.uses_stable_row_ids = source.data_storage_version, source.uses_stable_row_ids
        marks = [mark for mark in (self.max_fragment_id, source.max_fragment_id) if mark is not None]
        self.max_fragment_id = max(marks, default=None)
        self.next_row_id = max(self.next_row_id, source.next_row_id)

    def clone(self, ref_path: str, *, ref_name: str | None, is_shallow: bool, branch: str | None) -> None:
        """Begin as `source`; when shallow, its files are found below `ref_path`."""
        source = self._source(None)
        self.restore(source.version)
        self.version, self.branch = source.version, branch
        if not is_shallow:  # everything was copied below the clone itself
            self.base_paths, self.fragments = [], FragmentList.of([edits.homed(item) for item in self.fragments])
            self.indices = [replace(index, base_id=None) for index in self.indices]
            return
        base_id = max((base.id for base in self.base_paths), default=-1) + 1
        self.base_paths.append(BasePath(id=base_id, path=ref_path, name=ref_name, is_dataset_root=True))
        self.fragments = FragmentList.of([edits.rebased(fragment, base_id) for fragment in self.fragments])
        self.indices = [index if index.base_id is not None else replace(index, base_id=base_id) for index in self.indices]

    def _source(self, version: int | None) -> Manifest:
        if self.source is None or (version is not None and self.source.version != version):
            raise InputError(f"the manifest of version {version} is required, but was not passed", operation="Restore")
        return self.source

    # -- the end

    def finish(
        self, *, timestamp_ns: int, writer_version: WriterVersion, transaction_file: str, tag: str = "", unknown: bytes = b""
    ) -> Manifest:
        """The manifest."""
        storage_version = self._storage_version()
        inherited = self.previous if self.source is None else self.source
        reader, writer = next_flags(
            [item for item in (self.previous, self.source) if item is not None],
            has_deletions=self._has(FLAG_DELETION_FILES, inherited),
            stable_row_ids=self.uses_stable_row_ids,
            has_config=bool(self.config),
            has_base_paths=bool(self.base_paths),
            has_overlays=self._has(FLAG_DATA_OVERLAYS, inherited),
            mixed_versions=has_mixed_versions(self._incoming_versions(), data_storage_version=storage_version),
            indices=self.indices,
            no_transaction_file=self._options.no_transaction_file,
        )
        return Manifest(
            schema=self.schema,
            fragments=self.fragments,
            version=self.version,
            timestamp_ns=timestamp_ns,
            writer_version=writer_version,
            indices=tuple(self.indices),
            reader_feature_flags=reader,
            writer_feature_flags=writer,
            max_fragment_id=self.max_fragment_id,
            transaction_file=transaction_file,
            next_row_id=self.next_row_id,
            data_storage_version=storage_version,
            config=self.config,
            table_metadata=self.table_metadata,
            base_paths=tuple(self.base_paths),
            branch=self.branch,
            tag=tag,
            max_allocated_field_id=self.max_allocated_field_id,
            unknown=unknown,
        )

    def _has(self, flag: int, inherited: Manifest | None) -> bool:
        """Whether any fragment needs the flag. Where the version before did without, only new fragments are checked."""
        if inherited is not None and not inherited.reader_feature_flags & flag:
            return any(fragments.any_with(_FLAGGED[flag]) for fragments in self._incoming)
        return self.fragments.any_with(_FLAGGED[flag])

    def _storage_version(self) -> str:
        if self.data_storage_version is not None:
            return self.data_storage_version
        if self._options.data_storage_version is not None:
            return self._options.data_storage_version
        return min((version.text for version in self._incoming_versions()), default=DEFAULT_VERSION.text)

    def _incoming_versions(self) -> frozenset[FileVersion]:
        return frozenset(version for fragments in self._incoming for version in fragments.file_versions)
