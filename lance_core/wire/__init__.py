"""Nouns to bytes and back: the only room that knows protobuf."""
