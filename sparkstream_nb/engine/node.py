"""One simulated Siddhi server: an app's plan, its state and its clock."""

from __future__ import annotations
