"""Asset uris and the lane of a table."""

from __future__ import annotations

import sys

import pytest

from airflow_lance.assets import asset_uri, create_asset, table_uri
from airflow_lance.pools import ensure_pool, explain_pool, main, pool_of


@pytest.mark.parametrize(
    ("table", "asset"),
    [
        ("s3://lake/a/t.lance", "lance://s3/lake/a/t.lance"),
        ("/data/t.lance", "lance://file/data/t.lance"),
        ("GS://lake/t.lance/", "lance://gs/lake/t.lance"),
    ],
)
def test_a_tables_asset(table: str, asset: str) -> None:
    assert asset_uri(table) == asset
    assert create_asset(uri=table).uri == asset
    assert create_asset(uri=asset).uri == asset
    assert table_uri(asset).lower() == table.rstrip("/").lower()


@pytest.mark.parametrize("uri", ["lance://", "lance:///x", "lance://s3", "lance://s3/"])
def test_an_asset_must_name_a_table(uri: str) -> None:
    from airflow.sdk import Asset

    with pytest.raises(ValueError):
        Asset(uri=uri)


def test_a_relative_path_names_no_asset() -> None:
    with pytest.raises(ValueError, match="absolute path"):
        asset_uri("t.lance")


def test_the_lane_is_named_after_the_place_not_its_spelling() -> None:
    name = pool_of("/data/flights.lance")
    assert name.startswith("lance_flights_")
    assert pool_of("file:///data/flights.lance/") == name
    assert pool_of("/other/flights.lance") != name
    assert len(pool_of("s3://b/" + "x" * 500)) < 60


def test_ensure_pool_creates_checks_and_explains(
    airflow_database: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from airflow.models.pool import Pool

    assert "created" in ensure_pool("lane_a", uri="/data/t.lance")
    assert "is there" in ensure_pool("lane_a")
    Pool.create_or_update_pool("lane_b", slots=3, description="", include_deferred=False)
    with pytest.raises(ValueError, match="has 3 slots"):
        ensure_pool("lane_b")
    monkeypatch.setattr(sys, "argv", ["pools", "/data/t.lance"])
    main()
    assert f"pool {pool_of('/data/t.lance')!r} created" in capsys.readouterr().out
    assert "airflow pools set lane_a 1" in explain_pool("lane_a", "/data/t.lance")
