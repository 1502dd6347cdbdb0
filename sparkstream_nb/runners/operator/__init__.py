"""SiddhiQL as an operator of a Spark query, without Spark: its plan, rows packed by node, and the work of its nodes.

`runners/spark/dataframe_operator.py` puts these into a DataFrame. An operator is no app: it has no folder and no
journal. Its rows go through Spark, its nodes' states are in Spark's state store, and Spark's checkpoint makes it
exactly once.
"""
