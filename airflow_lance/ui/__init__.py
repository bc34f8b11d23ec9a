"""Pages in Airflow's UI: Lance tables, their history, and buttons that trigger DAG runs.

`plugin` registers them and is all that other Airflow processes import; the API server imports `app` and what it needs.
"""
