"""Encode and decode dataclasses: the only package that uses protobuf."""
