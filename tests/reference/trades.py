"""Seeded trades for the bench: python trades.py N OUT.csv"""

import sys

import numpy as np

n, out = int(sys.argv[1]), sys.argv[2]
r = np.random.default_rng(7)
w = 1 / np.arange(1, 101) ** 0.8
w /= w.sum()
s = r.choice(100, n, p=w)
ts = 1_600_000_000_000 + np.cumsum(r.integers(0, 3, n))
price = np.round(100 + 10 * np.sin(np.arange(n) / 5000 + s) + r.normal(0, 2, n), 4)
q = r.integers(1, 1001, n)
with open(out, "w") as f:
    f.writelines(f"S{a:03d},{b},{c},{d}\n" for a, b, c, d in zip(s, price, q, ts, strict=True))
