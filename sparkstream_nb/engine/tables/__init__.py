"""Tables in memory and in databases, with their indexes and conditions."""
