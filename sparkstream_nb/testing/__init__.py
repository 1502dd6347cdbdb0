"""Tests of users' own apps: test files, their runner and reports, the command, and the pytest plugin.

A test file (`.siddhitest`) names an app, sends it events from tables, and compares its outputs with other tables. Apps
run without their sources, sinks and databases.
"""
