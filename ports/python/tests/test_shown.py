"""What a notebook shows of results: tables of HTML, and plots."""

import math
import re
import sys

import pytest
import wisp
from conftest import CAFE
from wisp._html import make_table

PLAN = {"dataset": "log.db", "epsilon": 4, "delta": 1e-4, "num_records_public": 60, "runs": 10, "unit": "user"}


def texts_of(shown):
    """The texts of a table, without its markup."""
    return re.sub(r"<[^>]*>", "|", shown)


def test_nothing_of_a_file_is_markup(files):
    assert make_table("<b>", [("<i>", "<script>")], "a & b").count("<script>") == 0
    wisp.personalise(**files, dataset="<script>alert(1)</script>")
    shown = wisp.privacy_statement(files["ledger"], 1e-3)._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_a_statement_is_shown_whole(files):
    wisp.personalise(**files)
    statement = wisp.privacy_statement(files["ledger"], 1e-3)
    assert isinstance(statement, str) and statement.startswith("Privacy statement")
    shown = texts_of(statement._repr_html_()).replace("&#x27;", "'").replace("&lt;", "<").replace("&gt;", ">")
    for line in statement.splitlines():
        for part in line.strip().split(": ", 1):
            assert part.replace("&quot;", '"') in shown.replace("&quot;", '"').replace("&amp;", "&"), line


def test_results_are_tables(files, cafe):
    report = wisp.personalise(**files, budget_epsilon=2)
    assert f"{report.num_steps} of {report.planned_steps}" in texts_of(report._repr_html_())
    shown = texts_of(wisp.budget(files["ledger"])._repr_html_())
    assert "epsilon of all that was charged||0.5" in shown and "limit||2" in shown
    assert "synthetic public cafe guests" in cafe._repr_html_()
    plan = wisp.make_plan(CAFE, files["ledger"].with_name("p.ledger"), **PLAN)
    assert "outlook" in plan._repr_html_() and "runs||10" in texts_of(plan._repr_html_())
    run = wisp.run_planned(CAFE, files["log"], files["output"], files["ledger"].with_name("p.ledger"), num_threads=1)
    assert len(run.all_steps) == run.steps and "9, " in texts_of(run._repr_html_())
    cafe.close()
    assert "closed" in cafe._repr_html_()


def test_budgets_over_time(files):
    wisp.personalise(**files, budget_epsilon=2)
    wisp.personalise(**files)
    history = wisp.budget_history(files["ledger"])
    budget = wisp.budget(files["ledger"])
    assert history.points[-1].epsilon_stated == budget.epsilon_stated and history.epsilon_limit == 2
    assert [one.charges for one in history.points] == sorted({one.charges for one in history.points})
    assert [one.epsilon_charged for one in history.points] == sorted(one.epsilon_charged for one in history.points)
    assert all(one.epsilon_charged <= one.epsilon_stated for one in history.points)
    assert len(wisp.budget_history(files["ledger"], points=2).points) == 2
    assert history.to_frame("dict")["charges"] == [one.charges for one in history.points]
    assert "Budget over time" in history._repr_html_()
    with pytest.raises(wisp.IoError, match="none.ledger"):
        wisp.budget_history(files["ledger"].with_name("none.ledger"), delta=1e-3)


def test_plots(files, monkeypatch):
    report = wisp.personalise(**files, budget_epsilon=2)
    history = wisp.budget_history(files["ledger"])
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    axes = report.plot()
    assert [line.get_ydata().tolist() for line in axes.get_lines()] == [[one.loss for one in report.all_steps]]
    assert "local only" in axes.get_ylabel()
    drawn = history.plot(axes)
    assert drawn is axes and axes.get_ylabel() == "epsilon at delta 0.001"
    assert list(axes.get_lines()[1].get_ydata()) == [one.epsilon_stated for one in history.points]
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for plot in (report.plot, history.plot):
        with pytest.raises(wisp.Unsupported, match="^matplotlib is not installed here, which plots need$"):
            plot()


def test_a_plan_that_is_left_is_told_from_what_was_charged():
    told = wisp.Budget(3, 0.2, 1e-4, math.nan, False, 0, 0, 0, 0, 0)._repr_html_()
    assert "of the whole plan" in told and "3.00" in told and "0.20" in told
