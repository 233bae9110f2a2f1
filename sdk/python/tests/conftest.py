"""The fixtures of the package, under shorter names."""

from __future__ import annotations

import pytest

from parley_asp.testing import Broker


@pytest.fixture
def broker(parley_broker: Broker) -> Broker:
    return parley_broker
