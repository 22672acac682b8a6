"""Flows: the DAG, releases, training runs and the command line."""
