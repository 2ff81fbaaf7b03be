"""report.html and statement.txt of a fleet, for its operator."""

from __future__ import annotations

import math
import pathlib
from html import escape
from typing import Any

from .._errors import Error
from .._training import privacy_statement

# The limits of runtime/fleet/fleet_forecast.h.
_CLEAR, _NONE = 0.2, 0.8
_WIDTH, _HEIGHT = 720, 160  # of the drawing

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top }
svg { width: 100%; height: auto; background: #f6f6f4 } .came { fill: #2a7f62 } .asked { fill: #d9b28c }
.note { color: #666 } @media (prefers-color-scheme: dark) { body { background: #1c1c1c; color: #ddd }
svg { background: #282828 } .note { color: #999 } }
"""


def figures_of(server: Any) -> dict[str, Any]:
    """Both epsilons; with a seed, a sentence that there is no guarantee."""
    try:
        figures: dict[str, Any] = server.cost()
        return figures
    except Error as error:
        return {"no_guarantee": str(error)}


def _up(value: float) -> str:
    """An epsilon or a delta of three digits, rounded up."""
    if not 0 < value < math.inf:
        return str(value)
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / step - 1e-9) * step:.3g}"


def sentences_of(figures: dict[str, Any]) -> list[str]:
    """What both figures say, and whom they trust."""
    if "no_guarantee" in figures:
        return [f"There is no guarantee: {figures['no_guarantee']}."]
    delta = _up(figures["delta"])
    return [
        f"Readers of the models: epsilon {_up(figures['epsilon_readers'])} at delta {delta}, for everything that one"
        " device holds. It holds for those who see the model of every round, if the server adds the noise, shows"
        " nobody a single update, and keeps secret in which rounds a device took part.",
        f"The device itself: epsilon {_up(figures['epsilon_device'])} at delta {delta}. It holds even for those who"
        " know in which rounds a device took part, if the server adds the noise and shows nobody a single update.",
    ]


def noise_to_signal(plan: dict[str, Any], rounds: list[dict[str, Any]] | None = None) -> float:
    """z sqrt(d) / (n sqrt(T)) of the plan, or of the rounds that were: the noise in the sum of all rounds beside
    updates that all point the same way."""
    noise: float = plan["noise_multiplier"] * math.sqrt(plan["num_weights"])
    if rounds is None:
        cohort = plan["devices"] * (1 - plan["evaluators"]) * plan["takes_part"] / plan["rounds"]
        return float(noise / (cohort * math.sqrt(plan["rounds"])))
    added: int = sum(line["added"] for line in rounds)
    return noise * math.sqrt(len(rounds)) / added if added else math.inf


def _outlook(ratio: float) -> str:
    return "a clear gain" if ratio < _CLEAR else "some gain" if ratio < _NONE else "no gain"


def _drawing(rounds: list[dict[str, Any]]) -> str:
    most = max([1, *(line["asked"] for line in rounds)])
    step = _WIDTH / max(1, len(rounds))
    bars = []
    for i, line in enumerate(rounds):
        for kind, count in (("asked", line["asked"]), ("came", line["added"])):
            height = _HEIGHT * count / most
            bars.append(
                f'<rect class="{kind}" x="{i * step:.2f}" y="{_HEIGHT - height:.2f}" width="{step * 0.85:.2f}"'
                f' height="{height:.2f}"/>'
            )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="devices of each round">{"".join(bars)}</svg>'
        f'<p class="note">From left to right the rounds. The whole bar: devices that were asked, at most {most:,}.'
        " The green part: devices whose updates arrived in time.</p>"
    )


def _table(rows: list[tuple[str, ...]]) -> str:
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{body}</table>"


def _advice(forecast: float, reality: float, arrived: float) -> list[str]:
    advice = []
    if arrived < 0.8:
        advice.append(
            f"Only {arrived:.0%} of the devices that were asked arrived. Longer rounds (round_seconds), or devices that"
            " ask more often, cost no privacy."
        )
    if reality > 1.5 * forecast:
        advice.append("Fewer devices took part than the plan declares. Declare a number that you really reach.")
    if reality >= _CLEAR:
        advice.append(
            "More devices help most: the noise beside the signal falls with their number. More participations of each"
            " (takes_part) help by their square root, and cost every device epsilon."
        )
        advice.append("Train fewer weights: an adapter or the blocks alone (part). The noise grows with their number.")
    advice.append("Try learning rates on public data with wisp.fleet.simulate. That costs nobody any privacy.")
    return advice


def _page(server: Any, lines: list[dict[str, Any]]) -> str:
    plan = server.plan
    rounds = [line for line in lines if "verdict" not in line]
    evaluations = [line for line in lines if "verdict" in line]
    asked, added = (sum(line[name] for line in rounds) for name in ("asked", "added"))
    absent: dict[str, int] = {}
    for line in lines:
        for why, count in line["absent"].items():
            absent[why] = absent.get(why, 0) + count
    forecast, reality = noise_to_signal(plan), noise_to_signal(plan, rounds)
    traffic = sum(line["bytes_up"] + line["bytes_down"] for line in lines)
    parts = [
        f"<h1>The fleet {escape(plan['name'])}</h1>",
        f"<p>{server.round} of {plan['rounds']} rounds are done. {plan['devices']:,} devices are declared. Each takes"
        f" part in at most {plan['takes_part']} of them.</p>",
        '<p class="note">For the operator only: the counts of devices on this page are exact, and no noise protects'
        " them.</p><h2>Privacy</h2>",
        *(f"<p>{escape(sentence)}</p>" for sentence in sentences_of(figures_of(server))),
        "<p>statement.txt beside this page has everything that was charged.</p><h2>Rounds</h2>",
        _drawing(rounds),
        _table(
            [
                ("updates that arrived", f"{added:,} of {asked:,}"),
                *((f"missing: {why}", f"{count:,}") for why, count in sorted(absent.items())),
                ("seconds of a round, on average", f"{sum(x['seconds'] for x in rounds) / max(1, len(rounds)):.1f}"),
                ("weights and updates", f"{traffic / 1e6:,.1f} MB"),
            ]
        ),
        "<h2>Evaluations</h2>",
    ]
    if evaluations:
        rows: list[tuple[str, ...]] = [
            ("after round", "gain in NDCG@10 of a device", "standard deviation of the noise", "verdict")
        ]
        for line in evaluations:
            gain, noise = f"{line['mean_gain']:+.4f}", f"{line['deviation']:.4f}"
            rows.append((str(line["round"]), gain, noise, line["verdict"]))
        parts.append(_table(rows))
        parts.append("<p>The gain is over the base, on what the devices' people did last.</p>")
    else:
        parts.append("<p>The plan has none, so nothing here says if the model is better than its base.</p>")
    parts += [
        "<h2>Forecast and reality</h2>",
        _table(
            [
                ("noise to signal of the plan", f"{forecast:.3g}: {_outlook(forecast)}"),
                ("noise to signal of the rounds that were", f"{reality:.3g}: {_outlook(reality)}"),
            ]
        ),
        f"<p>Below {_CLEAR} a clear gain can be expected, above {_NONE} none.</p><h2>If it is poor</h2><ul>",
        *(f"<li>{escape(one)}</li>" for one in _advice(forecast, reality, added / max(1, asked))),
        "</ul>",
    ]
    head = f'<meta charset="utf-8"><title>Fleet {escape(plan["name"])}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def write(folder: pathlib.Path, server: Any, lines: list[dict[str, Any]]) -> None:
    """Writes both files. lines: of rounds.jsonl."""
    (folder / "report.html").write_text(_page(server, lines))
    texts = [*sentences_of(figures_of(server))]
    for name in ("fleet.ledger", "evaluators.ledger"):
        if (folder / name).exists():
            try:
                texts.append(f"{name}\n\n{privacy_statement(folder / name, server.plan['delta'])}")
            except Error as error:
                texts.append(f"{name}: {error}")
    (folder / "statement.txt").write_text("\n\n".join(texts).rstrip() + "\n")
