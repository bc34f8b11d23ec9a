"""Pages in Airflow's UI: which Lance tables there are, what happened to them, and buttons that trigger DAG runs.

`plugin` registers them and is all that other Airflow processes import; the API server imports `app` and what it needs.
"""
