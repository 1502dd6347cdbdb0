"""Former names that stay, with a warning."""

from __future__ import annotations

import importlib

import pytest

from sparkstream_nb import app, cluster
from sparkstream_nb.app.attaching import Attachable
from sparkstream_nb.app.running.apps import Apps


def test_the_former_name_of_app_warns_and_gives_the_same() -> None:
    with pytest.warns(DeprecationWarning, match="from sparkstream_nb.app import deploy"):
        assert cluster.deploy is app.deploy


def test_the_former_name_is_no_package_and_no_more_than_app() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = cluster.no_such_name
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("sparkstream_nb.cluster.conf")


def test_former_names_of_listings() -> None:
    with pytest.warns(DeprecationWarning, match="apps is called entries now"):
        assert Apps({}).apps == {}  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match="found is called items now"):
        assert Attachable(()).found == ()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'Apps' object has no attribute 'found'"):
        _ = Apps({}).found  # type: ignore[attr-defined]
