"""Recorded events under another deployment: divergences, failovers and studies."""
