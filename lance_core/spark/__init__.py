"""Lance jobs on Spark: fragments are written on executors, the driver stages one transaction, nothing here commits."""
