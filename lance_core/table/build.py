"""Build the next manifest: a transaction applied to the manifest before it."""

from __future__ import annotations

from lance_core.format.manifest import Manifest, WriterVersion
from lance_core.table.draft import ManifestDraft, TableOptions
from lance_core.table.stream_batches import advanced
from lance_core.table.transaction import Transaction


def build(
    previous: Manifest | None,
    transaction: Transaction,
    *,
    timestamp_ns: int,
    writer_version: WriterVersion,
    options: TableOptions | None = None,
    source: Manifest | None = None,
    transaction_file: str | None = None,
) -> Manifest:
    """The manifest that `transaction` makes of `previous` (None: the table is born).

    `source` is the manifest a Restore brings back or a Clone begins from. Raises InputError when the operation refers to
    something the table does not have; UnsupportedFeatureError for operations this library does not carry out.
    """
    draft = ManifestDraft(previous, options=options or TableOptions(), source=source)
    transaction.operation.apply(draft)
    draft.config.update(advanced(draft.config, transaction))
    return draft.finish(
        timestamp_ns=timestamp_ns,
        writer_version=writer_version,
        transaction_file=transaction.file_name if transaction_file is None else transaction_file,
        tag=transaction.tag,
        unknown=b"" if previous is None else previous.unknown,
    )
