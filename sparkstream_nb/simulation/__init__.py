"""Deployments as data, and what comes to pass in them: faults, elections, takeovers. No Spark, no threads, no clock."""
