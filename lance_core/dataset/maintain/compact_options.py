"""Options of a compaction: those of the caller override those in the table's configuration.

::

    compact_files(target_rows_per_fragment=1000)                                  by argument
    update_config({"lance.compaction.target_rows_per_fragment": "1000"})          for every compaction of this table
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import Any

from lance_core.errors import InputError
from lance_core.format.version import parse_storage_version

TARGET_ROWS = 1024 * 1024
STRATEGIES = ("adjacent", "tiered")
TIER_FANOUT = 8
OWN_OPTIONS = ("strategy", "tier_fanout", "enough_fragments", "max_files_per_fragment")
MODES = ("reencode", "try_binary_copy", "force_binary_copy")
CONFIG_PREFIX = "lance.compaction."
HINTS = frozenset(
    {"max_rows_per_group", "num_threads", "io_buffer_size", "binary_copy_read_batch_bytes", "max_overlays_per_fragment"}
)
"""They steer speed and memory of the official library; what is written is the same."""
_WIRE_MODES: Mapping[str | None, str] = MappingProxyType(
    {None: "reencode", "Reencode": "reencode", "TryBinaryCopy": "try_binary_copy", "ForceBinaryCopy": "force_binary_copy"}
)
_WIRE_NAMES = MappingProxyType({"try_binary_copy": "TryBinaryCopy", "force_binary_copy": "ForceBinaryCopy"})
_WIRE_REST: Mapping[str, Any] = MappingProxyType(
    {
        "max_rows_per_group": 1024, "num_threads": None, "io_buffer_size": None, "index_remap_mode": "Direct",
        "enable_binary_copy": False, "enable_binary_copy_force": False, "binary_copy_read_batch_bytes": 16 << 20,
        "max_overlays_per_fragment": 10, "has_eager_remappable_index": None,
    }
)  # fmt: skip
"""What else the official library wants to find in a task it executes: its defaults."""


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Bounds of a compaction. Sources beyond `max_source_*` wait for the next one; None is no bound.

    `strategy="adjacent"` is the official library's plan: every fragment below the target is merged with its neighbours.
    `"tiered"` rewrites a size tier when `tier_fanout` fragments of it have gathered (see `compact_tiers`), which keeps the
    cost of tables that grow by small appends low. It merges the smallest tiers first and stops when `enough_fragments` or
    fewer are left, because merging larger ones gains little for each byte.

    A fragment with more data files than `max_files_per_fragment` is rewritten whatever its size: each added column puts a
    further file beside those of every fragment.
    """

    target_rows_per_fragment: int = TARGET_ROWS
    max_bytes_per_file: int | None = None
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: tuple[int, ...] = ()
    batch_size: int | None = None
    defer_index_remap: bool = False
    compaction_mode: str = "reencode"
    data_storage_version: str | None = None
    strategy: str = "adjacent"
    tier_fanout: int = TIER_FANOUT
    enough_fragments: int = 0
    max_files_per_fragment: int | None = None

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise InputError(f"unknown strategy {self.strategy!r}", cure=f"Use one of {', '.join(STRATEGIES)}.")
        if self.tier_fanout < 2:
            raise InputError(f"tier_fanout must be at least 2, got {self.tier_fanout}")
        if self.compaction_mode not in MODES:
            raise InputError(f"unknown compaction_mode {self.compaction_mode!r}", cure=f"Use one of {', '.join(MODES)}.")
        for name in (
            "target_rows_per_fragment",
            "max_bytes_per_file",
            "max_source_rows",
            "batch_size",
            "max_files_per_fragment",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, got {value}")
        if not 0 <= self.materialize_deletions_threshold <= 1:
            raise InputError("materialize_deletions_threshold must be between 0 and 1")
        if self.data_storage_version is not None and parse_storage_version(self.data_storage_version).is_legacy:
            raise InputError("compaction cannot write the legacy format", cure="Omit data_storage_version.")


CompactionChoice = Mapping[str, Any] | CompactionOptions | None


def choose_options(given: CompactionChoice, config: Mapping[str, str]) -> CompactionOptions:
    """The caller's options (None counts as absent), else what the table's configuration says, else the defaults.

    Raises InputError for an unknown name, and for values that make no sense.
    """
    if isinstance(given, CompactionOptions):
        return given
    known = {item.name for item in fields(CompactionOptions)}
    chosen = {name: _configured(name, text) for name, text in _config_of(config).items() if name in known}
    for name, value in (given or {}).items():
        if name not in known and name not in HINTS:
            raise InputError(f"invalid compaction option: {name}", cure=f"Use one of {', '.join(sorted(known | HINTS))}.")
        if name in known and value is not None:
            chosen[name] = value
    # A share of one and more is never reached: deletions are not a reason to rewrite then, as in the official library.
    if chosen.get("materialize_deletions_threshold", 0) >= 1:
        chosen |= {"materialize_deletions": False, "materialize_deletions_threshold": 1.0}
    if "excluded_fragment_ids" in chosen:
        chosen["excluded_fragment_ids"] = tuple(sorted(set(chosen["excluded_fragment_ids"])))
    return CompactionOptions(**chosen)


def _config_of(config: Mapping[str, str]) -> dict[str, str]:
    return {key[len(CONFIG_PREFIX) :]: value for key, value in config.items() if key.startswith(CONFIG_PREFIX)}


_TEXTS: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {
        "materialize_deletions": {"true": True, "false": False}.__getitem__,
        "defer_index_remap": {"true": True, "false": False}.__getitem__,
        "materialize_deletions_threshold": float,
        "compaction_mode": str,
        "data_storage_version": str,
        "strategy": str,
        "excluded_fragment_ids": lambda text: tuple(int(part) for part in text.strip("[]").split(",") if part.strip()),
    }
)


def _configured(name: str, text: str) -> Any:
    try:
        return _TEXTS.get(name, int)(text)
    except (KeyError, ValueError) as error:
        raise InputError(
            f"the table's configuration has the invalid value {CONFIG_PREFIX}{name} = {text!r}",
            cure=f"Call delete_config_keys([{CONFIG_PREFIX + name!r}]), or set another value.",
        ) from error


def options_to_json(options: CompactionOptions) -> dict[str, Any]:
    """The options as the official library spells them in its plans; a plan is made, so its strategy is no part of it."""
    own = {name: value for name, value in asdict(options).items() if name not in OWN_OPTIONS}
    return {
        **_WIRE_REST,
        **own,
        "excluded_fragment_ids": [*options.excluded_fragment_ids],
        "compaction_mode": _WIRE_NAMES.get(options.compaction_mode),
    }


def options_from_json(given: Mapping[str, Any] | None) -> CompactionOptions:
    """What `options_to_json`, or the official library, wrote down; options that are hints there are ignored."""
    known = {item.name for item in fields(CompactionOptions)}
    chosen = {name: value for name, value in (given or {}).items() if name in known}
    mode = chosen.get("compaction_mode")
    return choose_options({**chosen, "compaction_mode": _WIRE_MODES.get(mode, mode)}, {})
