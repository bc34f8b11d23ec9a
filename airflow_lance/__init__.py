"""The Lance provider of Apache Airflow: hooks, operators, sensors and triggers over `lance_core`.

Nothing here knows a table's rules; nothing here is imported at parse time but Airflow and the standard library.
"""

__version__ = "0.1.0"
