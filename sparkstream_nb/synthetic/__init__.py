"""Generated events: columns of a stream drawn from distributions by a seed, the same on every machine and Python.

`events.py` puts a frame together; `columns` of the top has the public names. Numbers come from the raw words of
`seeded.py` by additions, multiplications, divisions, square roots, comparisons and tables alone (`ieee_arithmetic.py`):
libraries of mathematics round differently on different machines.
"""
