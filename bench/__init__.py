"""Benchmarks: the same work done by lance_core, pylance and Parquet, side by side in one run (`python -m bench --help`)."""
