"""How a job runs: through spark-submit, or in the worker process. Imports nothing until a task runs."""
