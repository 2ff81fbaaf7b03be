"""Refusals of the C interface."""

import os

import pytest
from program import BUILD, c_program, exists, plain, run

pytestmark = pytest.mark.usefixtures("cafe")


def test_the_calls_that_it_refuses_before_anything_is_spent():
    run(f"{BUILD}/wisp_example base.wisp log.db c.db c.wisp u00003 8")
    c_program("personalise_refused")
    run("wisp convert base.wisp --out base.safetensors")
    run("wisp convert base.safetensors --out imported.wisp")
    plain("ordinary.wisp")
    run(f"./personalise_refused base.wisp {os.getcwd()}/log.db c.db imported.wisp ordinary.wisp c.wisp")
    assert not exists("refused.wisp") and not exists("unpaid.db"), "a refused personalisation left a model behind"
