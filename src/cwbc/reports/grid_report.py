"""The report about a grid of one's own, in the form that the reports about the paper's items have."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.grids.outcomes import Outcome, Results
from cwbc.reports import showing, writing
from cwbc.reports.comparison import training_warnings
from cwbc.reports.overall import Overall
from cwbc.reports.page import block
from cwbc.reports.provenance import cell_files, provenance_of, settings_of, track_cells
from cwbc.reports.reliability_chart import reliability_chart
from cwbc.reports.report import DatasetPart, Picture, ReportDocument, paths_image
from cwbc.results.dataset_names import distinct_names, file_names
from cwbc.results.evidence import Evidence
from cwbc.results.recommendation import recommend
from cwbc.results.sentences import estimated_in_words, evaluated_in_words, retention_in_words, scored
from cwbc.runs.finished import TrainingHistory
from cwbc.runs.run_directory import PAGE, RunDirectory
from cwbc.runs.tracking import parse_trackers
from cwbc.system.errors import InputError
from cwbc.system.formatting import PERCENT, listed, score, span

FEW = 5  # seeds, below which bootstrap intervals are too narrow to call anything clear


def report(
    results: Results, out: Path | str, title: str | None = None, track: str | Sequence[str] | None = None
) -> Path:
    """Write the report about a grid; returns its page.

    Args:
        out: a directory of its own; an earlier report about a grid there is replaced.
        title: what the page is called; by default as the directory.
        track: "tensorboard", "wandb" or both, which show every cell as well.
    """
    if not isinstance(results, Results):
        raise InputError(f"cwbc.report takes what cwbc.run returns; got a {type(results).__name__}")
    out, trackers = Path(out), parse_trackers(track)
    writing.check(out, None, "directory")
    if not results.datasets:
        raise InputError("there is no cell to report on; `results` must be what cwbc.run returns")
    names = distinct_names(results.datasets)
    results = Results(_named(results.outcomes, names), results.failures)
    shown = _report(results, names, title or out.resolve().name)
    writing.prepare(out, "directory")
    writing.write(out, shown)
    track_cells(results.outcomes, out, trackers, warnings.warn)
    return out / PAGE


def _report(results: Results, names: Mapping[str, str], title: str) -> ReportDocument:
    evidence = Evidence.of(results.outcomes, list(names.values()), names=names)
    # In the order of the fullest dataset: a failed cell does not change which method is first.
    fullest_first = sorted(evidence.evaluated.values(), key=len, reverse=True)
    labels = list(dict.fromkeys(label for methods in fullest_first for label in methods))
    overall = Overall.of(evidence, labels)
    finding = _headline(overall, labels, results)
    cells = [each.cell for each in results.outcomes] + [each.cell for each in results.failures]
    shared, settings = settings_of(cells)
    known = provenance_of(results.outcomes) if results.outcomes else {}
    tables = {}
    if labels:
        tables["scores"] = showing.expert_table(evidence, labels)
        tables["named-returns"] = showing.landmark_table(evidence)
        if len(labels) > 1 and (overall.at_expert or overall.at_twice_expert):
            tables["overall"] = overall.table(dict.fromkeys(labels[1:], labels[0]))
        tables["settings"] = settings
    found = {name: recommend(methods) for name, methods in evidence.evaluated.items()}
    words = {name: " ".join([each.sentence(), *each.caveats]) for name, each in found.items() if each}
    (only,) = found.values() if len(found) == 1 else (None,)
    shown = ReportDocument(
        title,
        f"Experiment · {title}",
        only.sentence() if only else finding,
        _remarks(evidence, results),
        {},
        {name: words for name, words in (known | {"settings of all": shared}).items() if words},
        {"title": title, "headline": finding},
        only.caveats if only else (),
        finding if only else "",
        sections={"What to deploy": [block("facts", words)] if words and not only else []},
        tables=tables,
        charts=[*overall.profiles(), *showing.curves(evidence)],
    )
    return about_grid(shown, results, {each.cell.dataset: each.dataset for each in results.outcomes})


def about_grid(
    shown: ReportDocument, results: Results, datasets: Mapping[str, DatasetSummary]
) -> ReportDocument:
    """The report with what all reports about grids have; datasets are by name."""
    labels = list(dict.fromkeys(outcome.cell.label for outcome in results.outcomes))
    short = distinct_names(results.datasets)
    files, pictures, images, parts, warned = file_names(short.values()), {}, {}, {}, []
    for name, dataset in datasets.items():
        outcomes = {each.cell.label: each for each in results.outcomes if each.cell.dataset == name}
        methods = {label: each.method for label, each in outcomes.items()}
        runs = {label: RunDirectory(each.directory) for label, each in outcomes.items()}
        histories = {label: TrainingHistory.of(run.config(), run.metrics()) for label, run in runs.items()}
        videos = {label: video for label, run in runs.items() if (video := run.video())}
        parts[name] = DatasetPart(dataset, methods, histories, labels, videos)
        warned += [f"{name}, {line}" for line in training_warnings(methods)]
        if methods:
            chart = reliability_chart(methods, labels, short[name])
            pictures[f"{files[short[name]]}.png"] = Picture(chart, "", "achieved vs. target return")
            if paths := paths_image(methods, f"{short[name]}: paths in the maze"):
                images[f"{files[short[name]]}-paths.png"] = paths
    failures = [
        {"dataset": each.cell.dataset, "method": each.cell.label, "reason": each.reason}
        for each in results.failures
    ]
    return dataclasses.replace(
        shown,
        datasets=parts,
        summary={**shown.summary, "failures": failures},
        training_warnings=warned,
        failures=list(map(str, results.failures)),
        pictures={**shown.pictures, **pictures},
        images=images,
        files={**shown.files, **cell_files(results.outcomes)},
    )


def _named(outcomes: Sequence[Outcome], names: Mapping[str, str]) -> list[Outcome]:
    """Each outcome once, its dataset under a name that no other has; two with the same label are refused."""
    found: dict[tuple[str, str], Outcome] = {}
    for outcome in outcomes:
        dataset, label = outcome.cell.dataset, outcome.cell.label
        before = found.setdefault((dataset, label), outcome)
        if before.directory != outcome.directory:
            raise InputError(f"two cells on {dataset} are called {label!r}; each needs a label of its own")
    return [
        dataclasses.replace(each, dataset=dataclasses.replace(each.dataset, name=names[dataset]))
        for (dataset, _), each in found.items()
    ]


def _headline(overall: Overall, labels: Sequence[str], results: Results) -> str:
    if not labels:
        count = len(results.failures)
        return f"None of the {count} cells was finished." if count > 1 else "The only cell was not finished."
    if not overall.datasets:
        return f"No dataset has whole results of all {len(labels)} methods, so they cannot be compared."
    near = overall.mean(lambda each: each.at_expert)
    far = overall.mean(lambda each: each.at(each.task.far_return))
    common, every = overall.datasets, overall.evidence.datasets
    part = " on which all were evaluated" if len(common) < len(every) else ""
    where = f"on average over {'the ' * bool(part)}{len(common)} datasets{part}"
    if len(common) == 1:
        where = f"on {common[0]}" + (", where all were evaluated" if len(every) > 1 else "")
    sentences = []
    if all(map(math.isfinite, near.values())):
        sentences.append(f"At {overall.evidence.near.phrase}, {_best(near, overall, where)}.")
    if all(map(math.isfinite, far.values())):
        sentences += _retention(overall, far)
    top = overall.mean(lambda each: each.top)
    return " ".join(sentences) or f"At its best target, {scored(top)} ({where})."


def _retention(overall: Overall, far: Mapping[str, float]) -> list[str]:
    """The OOD retention of the methods that take a target, and the scores of the others."""
    scores = {label: far[label] for label, of in overall.methods.items() if of[0].sweep.takes_target}
    flat = [f"{label} has no target and scores {score(far[label])}." for label in far if label not in scores]
    if not scores:
        return flat
    fractions = overall.mean(lambda each: each.retention)
    # Where one dataset of several has no retention, there is no average either.
    some = any(math.isnan(fractions[label]) for label in scores) and len(overall.datasets) > 1
    words = scored(scores) if some else retention_in_words(fractions, scores)
    return [f"At {overall.evidence.far.phrase}, {words}.", *flat]


def _best(scores: Mapping[str, float], overall: Overall, where: str) -> str:
    """The method with the highest score, and whether that is clear."""
    highest = score(max(scores.values()))
    first = [label for label, found in scores.items() if score(found) == highest]
    others = [label for label in scores if label not in first]
    which = f"{listed(first)} score{'s' * (len(first) == 1)} highest,"
    if not others:
        which = f"{first[0]} scores" if len(first) == 1 else f"all {len(first)} methods score"
    doubts = []
    rivals = [each for each in others if len(first) == 1 and not overall.is_clearly_above(first[0], each)]
    if rivals:
        several = "the others" if rivals == others else f"{len(rivals)} of the others"
        doubts.append(f"not clearly above {rivals[0] if len(rivals) == 1 else several}")
    doubts += filter(None, [_few([len(each.scores) for of in overall.methods.values() for each in of])])
    return ", ".join([f"{which} {highest} {where}", *doubts])


def _few(counts: Collection[int]) -> str:
    """Words about too few seeds: by chance alone, all of one method may then beat all of another."""
    if min(counts) >= FEW:
        return ""
    seeds = " or ".join("one" if count == 1 else str(count) for count in sorted(set(counts)))
    return f"with {seeds} seed{'s' * (seeds != 'one')} each"


def _remarks(evidence: Evidence, results: Results) -> list[str]:
    every, failed = list(evidence), len(results.failures)
    if not every:
        return []
    seeds = {len(each.scores) for each in every}
    narrow = ", too narrow with so few" if min(seeds) < FEW else ""
    spread = f"± is the std over seeds, small numbers are 95 % bootstrap intervals{narrow}"
    if _are_rates(evidence):
        spread = f"small numbers are 95 % intervals, those of all runs together by bootstrap{narrow}"
    steps = {outcome.cell.dataset: outcome.dataset.steps for outcome in results.outcomes}
    hold, each_of = ("s hold", " each") if len(steps) > 1 else (" holds", "")
    remarks = [
        *estimated_in_words({each.sweep.method: each for each in every}),
        evaluated_in_words(seeds, {each.sweep.episodes for each in every}, spread),
        _scale(evidence),
        f"The dataset{hold} {span(steps.values())} steps{each_of}.",
    ]
    if failed:
        remarks.append(f"{failed} of {failed + len(results.outcomes)} cells failed and are left out.")
    numbers = [each.retention for each in every if each.sweep.takes_target]
    numbers += [each.at_expert for each in every]
    if any(map(math.isnan, numbers)) or len(every) < len(evidence.labels) * len(evidence.datasets):
        remarks.append("A dash stands for what was not evaluated, not finished or is not defined.")
    if len(seeds) > 1:
        remarks.append("Runs of all datasets are put together only where each has as many seeds.")
    return remarks + evidence.broken


def _are_rates(evidence: Evidence) -> bool:
    return {each.dataset.counts_successes for each in evidence} == {True}


def _scale(evidence: Evidence) -> str:
    if _are_rates(evidence):
        return f"Every return in the data is 0 or 1: scores are success rates in{PERCENT}."
    tasks = {name: next(iter(of.values())).task for name, of in evidence.evaluated.items()}
    own = [name for name, task in tasks.items() if not task.published and not task.is_game]
    if own and len(own) == len(tasks):
        words = "There are no published reference returns: scores are relative to those of each dataset, "
        return f"{words}0 is its min return, 100 its best."
    sentences = []
    if any(task.published for task in tasks.values()):
        sentences.append("Scores are normalized as in D4RL: 0 is a random policy, 100 the expert.")
    if any(task.is_game for task in tasks.values()):
        sentences.append("Scores of games are gamer-normalized: 0 is a random policy, 100 a gamer.")
    if own:
        words = f"Without published reference returns ({', '.join(own)}), 0 is the dataset's min return, "
        sentences.append(f"{words}100 its best.")
    return " ".join(sentences)
