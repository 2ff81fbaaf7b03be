"""Refusals of the C interface."""

import os

import pytest
from program import c_program, exists, plain, run

pytestmark = pytest.mark.usefixtures("cafe")


def test_the_calls_that_it_refuses_before_anything_is_spent():
    c_program("personalise_refused")
    run("wisp convert base.wisp --out base.safetensors")
    run("wisp convert base.safetensors --out imported.wisp")
    plain("ordinary.wisp")
    run(f"./personalise_refused base.wisp {os.getcwd()}/log.db c.db imported.wisp ordinary.wisp c.wisp")
    assert not exists("refused.wisp") and not exists("unpaid.db"), "a refused personalisation left a model behind"
