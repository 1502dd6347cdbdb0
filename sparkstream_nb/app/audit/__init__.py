"""Checks of apps that do not run: check, audit and split."""
