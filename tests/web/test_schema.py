"""The API against its own schema: generated requests find no 5xx, and no answer that the schema does not describe."""

from __future__ import annotations

import itertools

import pytest
from conftest_web import CLASSES, serving, write_photos
from hypothesis import HealthCheck, given, settings

from ally import Campaign
from ally.web.app import Page
from ally.web.server import Plan

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: the schema was not tested")

RULES = [schemathesis.checks.positive_data_acceptance]
"""A campaign has rules that no schema says: an id that is not known, an answer that is not yours."""


@pytest.fixture(scope="module")
def served(folder):
    write_photos(folder / "photos", 40)
    campaign = Campaign.create(
        folder / "schema.db", folder / "photos", classes=CLASSES, automatic=False, evaluate=5, lease_seconds=5.0
    )
    with serving(campaign, Plan(rate=100_000)) as found:
        campaign.relabel({"00001.png": CLASSES[0]})
        yield found


@pytest.fixture(scope="module")
def schema(served):
    found = schemathesis.openapi.from_url(
        f"{served.origin}/api/openapi.json", headers={"Origin": served.origin}, wait_for_schema=5
    )
    # A stream has no end, and training starts a process.
    return found.exclude(path_regex="/(events|training)$")


def test_every_operation(schema, served):
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 15
    for operation in operations:

        @settings(
            max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
        )
        @given(case=operation.as_strategy())
        def check(case):
            case.call_and_validate(headers={"Origin": served.origin}, timeout=20, excluded_checks=RULES)

        check()


def walk(schema, served, folder, **more):
    """Stateful: what one answer names, the next request uses. Every walk has a campaign of its own whose clock stands
    still: hypothesis takes a walk twice and expects the same answers."""
    machine = schema.as_state_machine()
    outer = served.ready.page.app
    numbers = itertools.count()

    class Walk(machine):
        def setup(self):
            place = folder / f"walk{next(numbers)}.db"
            self.campaign = Campaign.create(
                place, folder / "few", classes=CLASSES, automatic=False, evaluate=2, clock=lambda: 1e9
            )
            outer.app = Page(self.campaign, outer.access, outer.hosts, rate=100_000).app.app

        def teardown(self):
            self.campaign.close()

        def get_call_kwargs(self, case):
            return {"headers": {"Origin": served.origin}, "timeout": 20}

        def validate_response(self, response, case, **more):
            case.validate_response(response, excluded_checks=RULES)

    before = outer.app
    write_photos(folder / "few", 8, side=8)
    try:
        Walk.run(settings=settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, **more))
    finally:
        outer.app = before
    return next(numbers)


def test_operations_one_after_the_other(schema, served, folder):
    assert walk(schema, served, folder / "short", max_examples=4, stateful_step_count=6, derandomize=True) >= 4


@pytest.mark.slow
def test_many_walks(schema, served, folder):
    assert walk(schema, served, folder / "long", max_examples=60, stateful_step_count=12) >= 60
