"""Compressive encodings, one file each: `decode`, `decode_block` and the encoders beside them.

A codec is a module of functions and one row in `registry`; a nested encoding recurses through the `Codecs` object that
is passed down, so no codec imports the registry or a sibling.
"""
