"""Flows: the DAG, releases, training runs and the command line.

Importing the package turns off the analytics of the tools below it, before any of them can be imported.
"""

from flows.environment import opt_out

opt_out()
