"""Jobs: one spec model shared by Airflow, Spark and the command line; plan -> run -> stage | abort, then commit."""
