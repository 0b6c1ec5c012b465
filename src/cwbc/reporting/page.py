"""The report as one HTML file that needs nothing else: it can be mailed, archived and read on a phone."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape

from cwbc.dataset_summary import DatasetSummary
from cwbc.reporting.style import STYLE
from cwbc.results import Measure, MethodSummary, same_target
from cwbc.tasks import Task
from cwbc.wording import amount, headline, landmarks, score, value_and_interval

Methods = Mapping[str, MethodSummary]


def report_page(
    methods: Methods, task: Task, dataset: DatasetSummary, provenance: Mapping[str, str], figure: bytes
) -> str:
    """The whole page; `figure` is the PNG of `reliability_figure`, `provenance` what made the numbers."""
    finding = headline(methods, task, dataset.best)
    picture = base64.b64encode(figure).decode()
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(dataset.name)} – reliability report</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<header>
<p class="kicker">Reliability report · {escape(dataset.name)}</p>
<h1>{escape(finding)}</h1>
<p class="lead">{escape(_measured(methods))} {escape(_scale(task))}</p>
</header>
<figure>
<img src="data:image/png;base64,{picture}" alt="Achieved against asked return. {escape(finding)}">
</figure>
<section><h2>Scores</h2>{_scores(methods, task, dataset.best)}</section>
<section><h2>Every asked return</h2>{_targets(methods, task, dataset.best)}</section>
<section><h2>Dataset</h2>{_facts(_describe(dataset))}</section>
<section><h2>Provenance</h2>{_facts(provenance)}</section>
</main>
</body>
</html>
"""


def _measured(methods: Methods) -> str:
    seeds = sorted({method["seeds"] for method in methods.values()})
    episodes = " or ".join(map(str, sorted({method["episodes"] for method in methods.values()})))
    if seeds == [1]:
        return f"One seed with {episodes} episodes per asked return, so there are no intervals."
    return (
        f"Means over {' or '.join(map(str, seeds))} seeds with {episodes} episodes per asked return; "
        "the small numbers are 95 % intervals over seeds."
    )


def _scale(task: Task) -> str:
    if task.published:
        return (
            "Scores are normalized as in D4RL: 0 is a random policy "
            f"(return {amount(task.random_score)}), 100 the expert (return {amount(task.expert_score)})."
        )
    return (
        "This environment has no published reference returns: scores are relative to the dataset's own, "
        f"0 is its lowest (return {amount(task.random_score)}), 100 its best ({amount(task.expert_score)})."
    )


def _scores(methods: Methods, task: Task, best: float) -> str:
    marks = landmarks(task, best)
    heads = [(mark.label, f"asked {amount(mark.target)}") for mark in marks]
    heads += [("best point", "of the curve"), ("retention", f"{marks[-1].label} / best point")]
    heads += [("monotonicity", "no loss = 100 %"), ("calibration", "error in points")]
    head = "".join(f"<th>{escape(name)}<small>{escape(note)}</small></th>" for name, note in heads)
    rows = []
    for name, method in methods.items():
        top = method["best_point"]
        cells = [_cell(method[mark.key]) for mark in marks]
        cells += [_cell(top, f"asked {amount(top['target'])}"), _fraction(method["ood_retention"])]
        cells += [_fraction(method["monotonicity"]), _cell(method["calibration_error"])]
        rows.append(f"<tr><th>{escape(name)}</th>{''.join(cells)}</tr>")
    return _table(f"<th>method</th>{head}", rows)


def _cell(point: Measure | None, note: str = "") -> str:
    value, interval = value_and_interval(point)
    notes = "".join(f"<small>{text}</small>" for text in (interval, note) if text)
    return f"<td>{value}{notes}</td>"


def _fraction(point: Measure | None) -> str:
    value, interval = value_and_interval(point, fraction=True)
    if point is None or point["value"] is None:
        return f"<td>{value}</td>"
    width = 100 * min(max(point["value"], 0.0), 1.0)
    bar = f'<span class="bar"><span style="width:{width:.0f}%"></span></span>'
    return f"<td>{value}{f'<small>{interval}</small>' if interval else ''}{bar}</td>"


def _targets(methods: Methods, task: Task, best: float) -> str:
    curves = {name: {point["target"]: point for point in method["curve"]} for name, method in methods.items()}
    tops = [method["best_point"]["value"] for method in methods.values()]
    highest = max((top for top in tops if top is not None), default=0.0)
    rows = []
    for target in sorted({target for curve in curves.values() for target in curve}):
        named = [mark.label for mark in landmarks(task, best) if same_target(mark.target, target)]
        tags = "".join(f'<span class="tag">{escape(label)}</span>' for label in named)
        cells = []
        for curve in curves.values():
            value = curve[target]["normalized"] if target in curve else None
            share = 0.0 if value is None or highest <= 0 else min(max(value / highest, 0.0), 1.0)
            shown = "–" if value is None else score(value)
            cells.append(f'<td class="heat" style="--share:{100 * share:.0f}%">{shown}</td>')
        rows.append(f"<tr><th>{amount(target)}{tags}</th>{''.join(cells)}</tr>")
    names = "".join(f"<th>{escape(name)}</th>" for name in methods)
    return _table(f"<th>asked return</th>{names}", rows)


def _describe(dataset: DatasetSummary) -> dict[str, str]:
    return {
        "name": dataset.name,
        "environment": dataset.environment or "unknown",
        "episodes": f"{dataset.episodes:,}",
        "steps": f"{dataset.steps:,}",
        "best return": amount(dataset.best),
        "mean return": amount(dataset.mean_return),
        "lowest return": amount(dataset.lowest),
        "content hash": dataset.content_hash,
    }


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    return f'<dl class="facts">{rows}</dl>'


def _table(head: str, rows: list[str]) -> str:
    body = "\n".join(rows)
    return f'<div class="box"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'
