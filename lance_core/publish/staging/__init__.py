"""The life of a staged transaction: begin, finish, abort, collect."""
