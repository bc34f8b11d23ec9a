"""Blob columns: descriptors read and written, payloads in sidecar files."""
