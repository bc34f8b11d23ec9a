"""Between Arrow arrays and the blocks and levels that pages hold."""
