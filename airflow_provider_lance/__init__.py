"""Example DAGs, where Airflow looks for those of the distribution of this name. The provider itself is `airflow_lance`."""
