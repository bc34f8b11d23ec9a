"""Every public name of the official library is here, or on a list that says why it is not."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import types
from pathlib import Path

import lance
import pytest

NATIVE = "of the native library's planner or runtime, which is not below this one"
MEM_WAL = "MemWAL is recognised and preserved, not written"
IMAGES = "extension arrays of pictures and bfloat16; their columns are read and written as storage"
TORCH = "for torch, which is not among the dependencies"
BLOB_WRITERS = "single blob files are written by write_dataset only"
CLEANUP = "LanceDataset.explain_cleanup gives a CleanupPlan"
ROW_META = "row id sequences and version columns are lance_core.rowids; fragments carry them as they are"

ABSENT_MODULES = {
    "bitmap": "coverage is a Python set",
    "conftest": "of its tests",
    "debug": "the command line shows manifests and transactions: lance inspect, lance log",
    "dependencies": "internal: which optional packages are there",
    "download": "models of languages for tokenizers that are not implemented",
    "hf": "converts data sets of another package, which speak the Arrow stream interface themselves",
    "lance": "the native module itself",
    "mem_wal": MEM_WAL,
    "otel": NATIVE,
    "pydantic": "classes of another package",
    "sampler": TORCH,
    "torch": TORCH,
    "torch.async_dataset": TORCH,
    "torch.bench_utils": TORCH,
    "torch.data": TORCH,
    "torch.dist": TORCH,
    "torch.distance": TORCH,
    "torch.kmeans": TORCH,
    "tracing": NATIVE,
}

ABSENT_NAMES: dict[str, dict[str, str]] = {
    "": {
        "BlobArray": "blob_array gives a pyarrow ExtensionArray",
        "BlobDescriptor": BLOB_WRITERS,
        "BlobDescriptorArrayBuilder": BLOB_WRITERS,
        "CleanupCandidateFile": CLEANUP,
        "CleanupExplanation": CLEANUP,
        "CleanupReferencedBranch": CLEANUP,
        "CompactedSsTable": MEM_WAL,
        "DedicatedBlobWriter": BLOB_WRITERS,
        "ExecutionPlan": NATIVE,
        "FFILanceTableProvider": NATIVE,
        "LsmPointLookupPlanner": MEM_WAL,
        "LsmScanner": MEM_WAL,
        "LsmVectorSearchPlanner": MEM_WAL,
        "PackedBlobWriter": BLOB_WRITERS,
        "ShardSnapshot": MEM_WAL,
        "ShardWriter": MEM_WAL,
        "ShardingField": MEM_WAL,
        "ShardingSpec": MEM_WAL,
        "bytes_read_counter": "requests and bytes are counted by scan_stats_callback, for one scan each",
        "evaluate_sharding_spec": MEM_WAL,
        "iops_counter": "requests and bytes are counted by scan_stats_callback, for one scan each",
        "simd_info": NATIVE,
    },
    "arrow": dict.fromkeys(
        (
            "BFloat16", "BFloat16Array", "BFloat16Type", "EncodedImageType", "FixedShapeImageTensorType", "ImageArray",
            "ImageScalar", "ImageURIArray", "ImageURIType", "PandasBFloat16Array", "bfloat16_array",
            "EncodedImageArray", "EncodedImageScalar", "FixedShapeImageTensorArray", "FixedShapeImageTensorScalar",
            "ImageURIScalar",
        ),
        IMAGES,
    ),
    "blob": {
        "BlobArray": "blob_array gives a pyarrow ExtensionArray",
        "BlobIterator": "iter(BlobColumn(column))",
        "DEFAULT_BLOB_BUFFER_SIZE": "a BlobFile reads what is asked for",
    },
    "dataset": {
        "DEFAULT_BLOB_BUFFER_SIZE": "a BlobFile reads what is asked for",
        "VectorIndexReader": "partitions of an index are not handed out",
        "VectorSearchQuery": "a search is asked for with nearest=",
        "serialize_row_addrs": "row_addr_allowlist and row_addr_blocklist are not implemented",
    },
    "file": {},
    "fragment": {"RowDatasetVersionMeta": ROW_META, "RowIdMeta": ROW_META, "RowIdSequence": ROW_META},
    "indices": {"IndexFileVersion": "index_file_version takes the text V3"},
    "indices.builder": dict.fromkeys(
        ("PARTITION_COLUMN", "PQ_COLUMN", "RESIDUAL_COLUMN"), "columns of intermediate files, which are not written here"
    ),
    "namespace": {"RestAdapter": "a server in front of a catalog, for tests of clients"},
    "query": {"MinHashQuery": "MinHash indices are not searched"},
    "schema": {"LanceSchema": "LanceDataset.lance_schema is a lance_core.format.schema.Schema"},
    "udf": {"normalize_transform": "internal: add_columns takes what it takes"},
    "util": {"HNSW": "graphs are built inside indices: IVF_HNSW_*"},
    "vector": dict.fromkeys(
        (
            "train_pq_codebook_on_accelerator", "train_ivf_centroids_on_accelerator", "compute_pq_codes",
            "compute_partitions", "one_pass_train_ivf_pq_on_accelerator", "one_pass_assign_ivf_pq_on_accelerator",
        ),
        TORCH,
    )
    | dict.fromkeys(
        (
            "find_duplicate_pairs", "find_duplicate_pairs_in_partition", "hamming_clustering_for_ivf_partition",
            "get_ivf_partition_info", "hamming_clustering_for_sample", "hamming_clustering_for_range",
        ),
        "clusters of near duplicates are not implemented",
    )
    | {"CUDA_REGEX": TORCH},
}  # fmt: skip


def modules() -> list[str]:
    found = pkgutil.walk_packages([str(Path(lance.__file__).parent)], "")
    return sorted({"", *(item.name for item in found if not any(part.startswith("_") for part in item.name.split(".")))})


def public_names(module: types.ModuleType) -> set[str]:
    """What a module defines, or says that it hands on."""
    named = getattr(module, "__all__", None)
    if named is not None and module.__name__ != "lance.arrow":
        return {name for name in named if not name.startswith("_") or name == "__version__"}
    own = {name for name, item in vars(module).items() if getattr(item, "__module__", module.__name__) == module.__name__}
    public = {name for name in own if not name.startswith("_")} | set(named or ())
    return {name for name in public if name not in ("TYPE_CHECKING", "LOGGER")} - {
        name for name, item in vars(module).items() if isinstance(item, types.ModuleType) or repr(item).startswith("typing.")
    }


def official_names(name: str) -> set[str]:
    """The public names of an official module; of one that does not import here, those that its text defines."""
    try:
        return public_names(importlib.import_module(f"lance.{name}".rstrip(".")))
    except ModuleNotFoundError:
        path = Path(lance.__file__).parent / f"{name.replace('.', '/')}.py"
        found: set[str] = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Assign):
                found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        return {item for item in found if not item.startswith("_")}


@pytest.mark.parametrize("name", modules())
def test_a_module_path_of_the_official_library_exists_or_is_listed(name: str) -> None:
    ours = f"lance_core.{name}".rstrip(".")
    if name in ABSENT_MODULES:
        with pytest.raises(ImportError):
            importlib.import_module(ours)
        return
    importlib.import_module(ours)


@pytest.mark.parametrize("name", [name for name in modules() if name not in ABSENT_MODULES])
def test_a_public_name_of_the_official_library_exists_or_is_listed(name: str) -> None:
    ours = importlib.import_module(f"lance_core.{name}".rstrip("."))
    missing = {item for item in official_names(name) if not hasattr(ours, item)}
    assert missing == {*ABSENT_NAMES.get(name, ())}
    listed_and_here = {item for item in ABSENT_NAMES.get(name, ()) if hasattr(ours, item)}
    assert listed_and_here == set(), "take them off the list"
