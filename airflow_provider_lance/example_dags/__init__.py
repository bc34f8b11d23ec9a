"""DAGs that Airflow shows with `[core] load_examples`: no schedule, no connection, tables in a temporary folder only."""
