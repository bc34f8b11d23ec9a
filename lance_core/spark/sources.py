"""A `SourceSpec` -> a DataFrame. Spark's error about a bad source becomes an InputError that names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.types as pt

from lance_core.errors import InputError, LanceError, SchemaMismatchError, SourceMissingError
from lance_core.jobs.sources.open_source import open_local_source
from lance_core.jobs.sources.text_types import TEXT_FORMATS
from lance_core.jobs.specs.load_function import load_function
from lance_core.jobs.specs.secret import as_secret
from lance_core.jobs.specs.spec import SourceSpec
from lance_core.spark.lance_tables import LanceTables
from lance_core.spark.types import spark_schema


def open_spark_source(
    spark: Any,
    spec: SourceSpec,
    *,
    tables: LanceTables | None = None,
    name: str = "",
    query: str | None = None,
    table: Any = None,
) -> Any:
    """The DataFrame of a source, analysed but not run. InputError for a missing path, unknown format, bad SQL or function.

    Views of a SQL source are temporary views of this session; `name` is that of a view, `query` what reads it. A Lance table
    is read at one version, however often the query names it. `table`: the Arrow schema with the types of a text file.
    """
    try:
        frame = _open(spark, spec, tables or LanceTables(), name, query, table)
        _ = frame.schema  # Spark Connect analyses no earlier
    except Exception as error:
        raise as_input_error(error, spec) or error from None
    return frame


def _open(spark: Any, spec: SourceSpec, tables: LanceTables, name: str, query: str | None, table: Any) -> Any:
    if spec.callable:
        frame = load_function(spec.callable)(spark, **spec.kwargs)
        if not hasattr(frame, "mapInArrow"):
            raise InputError(f"source.callable {spec.callable} returned {type(frame).__name__}, not a DataFrame")
        return frame
    if spec.sql:
        for view, source in spec.views.items():
            open_spark_source(spark, source, tables=tables, name=view, query=spec.sql).createOrReplaceTempView(view)
        return spark.sql(spec.sql)
    options = {key: as_secret(value, where=f"source.options.{key}").reveal() for key, value in spec.options.items()}
    if str(spec.format).lower() == "lance" and spec.schema is None:
        return tables.open(spark, spec.paths, options, name=name, query=query)
    reader = spark.read.format(spec.format)
    for key, value in options.items():
        reader = reader.option(key, value)
    schema = spec.schema or text_schema(spec, table)
    if schema:
        reader = reader.schema(schema)
    if schema and str(spec.format).lower() in TEXT_FORMATS and "mode" not in {key.lower() for key in options}:
        reader = reader.option("mode", "FAILFAST")  # Spark's own choice is a null where a value does not fit
    return reader.load(list(spec.paths)) if spec.paths else reader.load()


def text_schema(spec: SourceSpec, table: Any) -> Any:
    """The Spark schema of a text file by the rule of every execution; None where Spark has to find it, because this process
    cannot read the files or an option, or Spark cannot parse a type from text."""
    if str(spec.format).lower() not in TEXT_FORMATS or not spec.paths:
        return None
    try:
        found = open_local_source(spec, table=table).schema
    except SourceMissingError:
        return None  # Spark says it by itself, and may see what this process does not
    except SchemaMismatchError:
        raise  # the file itself is wrong
    except InputError:
        return None
    if any(test(field.type) for field in found for test in _NOT_PARSED_BY_SPARK):
        return None
    return spark_schema(found)


_RECORD_REFUSED = ("MALFORMED_RECORD_IN_PARSING", "PARSE_DATETIME_BY_NEW_PARSER")
"""Spark's words for a record that is refused, and Spark 3.5's for a date that there is not."""
_NOT_PARSED_BY_SPARK = (pt.is_time, pt.is_duration, pt.is_uint64, pt.is_float16)


def refused_record(error: BaseException, spec: SourceSpec | None, table: Any) -> InputError | None:
    """For Spark's refusal of a record of a text file: where it is and what is wrong, as the local execution says it."""
    if spec is None or not any(text in str(error) for text in _RECORD_REFUSED):
        return None
    sources = [spec] if spec.paths else [*spec.views.values()]
    for source in sources:
        if str(source.format).lower() not in TEXT_FORMATS:
            continue
        try:
            for _ in open_local_source(source, table=table if spec.paths else None).batches():
                pass
        except InputError as found:
            return found
        except (LanceError, OSError):
            continue
    paths = ", ".join(path for source in sources for path in source.paths)
    return InputError(
        f"a record of {paths} does not fit the types of its columns: {str(error).splitlines()[0]}",
        cure='Mend it, name the types in `schema`, or take nulls for such values with "options": {"mode": "PERMISSIVE"}.',
    )


def evaluate_sql(frame: Any, kept: str, columns: Mapping[str, str]) -> Any:
    """The column `kept` and Spark's SQL over the frame's columns. InputError names what Spark refuses."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        # Text, not column objects: those of classic Spark and of Spark Connect are not the same.
        found = frame.selectExpr(kept, *(f"(\n{sql}\n) AS {_quoted(name)}" for name, sql in columns.items()))
        _ = found.schema  # Spark Connect analyses no earlier
    except (AnalysisException, ParseException) as error:
        text = str(error).strip().split("\n", 1)[0]
        raise InputError(f"Spark rejected the expressions of {', '.join(columns)}: {text}") from None
    return found


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def as_input_error(error: BaseException, spec: SourceSpec) -> InputError | None:
    """What Spark's error says about the source, as our own; None when it says nothing about it."""
    from pyspark.errors import AnalysisException, ParseException

    if "[DATA_SOURCE_NOT_FOUND]" in str(error):  # arrives as a bare Java error
        return InputError(f"this Spark does not know the source format {spec.format!r}", cure="Add its package to the job.")
    if not isinstance(error, (AnalysisException, ParseException)):
        return None
    condition = _condition(error)
    text = str(error).split("\n", 1)[0].strip()
    if condition == "PATH_NOT_FOUND":
        path = _parameters(error).get("path") or ", ".join(spec.paths)
        return SourceMissingError(f"source path {path} does not exist", uri=path)
    if condition == "UNABLE_TO_INFER_SCHEMA" and spec.paths:
        paths = ", ".join(spec.paths)
        return SourceMissingError(f"source path {paths} contains no file", uri=paths)
    return InputError(f"the source ({spec.describe()}) was rejected by Spark: {text}")


def _condition(error: Any) -> str:
    for name in ("getCondition", "getErrorClass"):  # the first since Spark 4.0
        if hasattr(error, name):
            return str(getattr(error, name)() or "")
    return ""


def _parameters(error: Any) -> dict[str, str]:
    try:
        return dict(error.getMessageParameters() or {})
    except Exception:  # some releases fail to carry the parameters over; the message is enough then
        return {}
