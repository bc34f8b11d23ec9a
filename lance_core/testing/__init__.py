"""A simulated world for the commit protocol: the real code, one store call at a time, on every schedule.

Top layer, for tests and for the command `python -m lance_core.testing.simulate`; the product never imports it.
See docs/protocol.md.
"""
