"""Stores behind fsspec: object stores, HDFS, HTTP."""
