"""Deployments as data, and their simulation: faults, elections, takeovers. No Spark, no threads, no clock."""
