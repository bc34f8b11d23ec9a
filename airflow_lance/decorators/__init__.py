"""Task decorators of the Lance provider; import the module you need, this package imports nothing."""
