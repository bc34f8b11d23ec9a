"""Data files: opened, read and written. `open` finds what is where, `reader` turns rows into batches, `writer` makes files.

opened = open_file(store, "data/a.lance")
for batch in opened.read(schema, batch_size=8192): ...
"""
