"""Advice for training from the statistics of a dataset: each sentence holds whenever its condition does."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from cwbc.core.regularizers import Conservative
from cwbc.core.weighting import ByReturn
from cwbc.data.checks import equal_returns
from cwbc.data.statistics import DatasetStatistics as Statistics
from cwbc.system.formatting import PERCENT, amount, counted, percent

FEW_EPISODES = 20
FEW_NOISY = 5  # episodes that the regularizer adds noise to
NOTABLE = 0.1  # a fraction of the samples, or of the return range, that is worth a sentence
MISSING_ENDS = 0.05  # the fraction of the steps after the last episode end that looks like a mistake


def advice(statistics: Statistics, dataset: str | None = None) -> list[str]:
    """What matters before training, most important first; the last line is the next command on `dataset`."""
    s = statistics
    about_returns = () if s.returns.equal else (*_on_sampling(s), *_on_returns(s))
    rest = (*_on_dimensions(s), *_on_environment(s), _next(s, dataset or s.name))
    return [*_on_episodes(s), *about_returns, *rest]


def _on_episodes(s: Statistics) -> Iterator[str]:
    if s.lengths.max == 1:
        right = "If they are, dt has no past to attend to, and rvs is enough"
        yield f"Every episode is a single step. Are the episode ends marked correctly? {right}."
    for issue in equal_returns(s.returns.min, s.returns.best, s.episodes):
        yield f"{issue.what.capitalize()}: {issue.remedy}."
    if s.episodes < FEW_EPISODES:
        yield f"Only {counted(s.episodes, 'episode')}: percentiles, bins and policies rest on very little."
    unfinished = s.unfinished_steps / (s.steps + s.unfinished_steps)
    if unfinished >= MISSING_ENDS:
        yield f"{_fraction(unfinished)} of the steps are excluded: no episode end follows. Are ends missing?"


def _on_sampling(s: Statistics) -> Iterator[str]:
    """Which trajectories are sampled with and without weighting."""
    mean, weighted_mean = s.by_length.mean_return, s.by_return.mean_return
    temperature, best = amount(s.temperature), amount(s.returns.best)
    if _outlier(s):
        what = f"it returns {best}, the next {amount(s.returns.next_best or 0.0)}."
        less = "of the time; a larger --smoothing or --temperature less."
        samples = f"Weighting samples it {_fraction(s.by_return.top_fraction)} {less}"
        remedy = samples if s.by_return.top_fraction >= NOTABLE else "Is it genuine?"
        yield f"One episode has a far higher return than the rest: {what} {remedy}"
    weighted, plain = s.by_return.effective_sample_size, s.by_length.effective_sample_size
    # Where few episodes are good, sampling these few is the point.
    if weighted < FEW_EPISODES and weighted <= plain / 2 and not (_outlier(s) or _rare(s) or _ties(s)):
        size = f"the effective sample size is only {counted(round(weighted), 'episode')}, not {plain:,.0f}"
        smoothing = f"a --smoothing above {s.weighting.smoothing:g} prefers rare returns less"
        higher = f"A --temperature above {temperature} prefers high returns less"
        yield f"With weighting, {size}. {higher}, {smoothing}."
    if s.scores is not None and _expert_is_ood(s):
        expert = f"The expert return, {amount(s.scores.expert_return)}, exceeds the best in the dataset"
        yield f"{expert}, {best}. On such a target, plain rvs tends to collapse; +c prevents that."
    if not _outlier(s):
        yield from _on_top(s)
    if s.returns.counts_successes and s.by_return.top_fraction - s.by_length.top_fraction >= NOTABLE:
        only = f"With weighting, {_fraction(s.by_return.top_fraction)} of the samples are successes"
        more = f"If these are too few, a --temperature above {temperature} samples more failures beside them"
        yield f"{only}: the policy clones them, whatever its target. {more}."
    if weighted_mean < mean - 0.02 * s.returns.range:
        lowers = f"lowers the mean return of the sampled trajectories, from {amount(mean)}"
        lower = f"A --temperature below {temperature} prefers high returns more"
        yield f"Weighting {lowers} to {amount(weighted_mean)}. {lower}."


def _on_top(s: Statistics) -> Iterator[str]:
    """How the best episodes are sampled."""
    plain, gain = s.by_length.top_fraction, s.by_return.top_fraction - s.by_length.top_fraction
    with_weighting = _fraction(s.by_return.top_fraction)
    sampled = f"{_fraction(plain)} of the samples without weighting, {with_weighting} with it"
    if _rare(s):
        above = f"{_of_episodes(s.noise.episodes, s)} a return above the min, {amount(s.returns.min)}"
        yield f"{above}; the regularizer adds noise to no others. The best are {sampled}."
    elif _ties(s):
        tied = f"{s.returns.at_best:,} of {s.episodes:,} episodes"
        what = f"The top 5{PERCENT} tie at {amount(s.returns.best)}: {tied}"
        what = f"{what}, {sampled}." if gain >= NOTABLE else f"{what}."
        effect = "weighting matters, and the regularizer" if gain >= NOTABLE else "the regularizer matters"
        higher = f" If no higher return is possible, use it as the target; then {effect} little."
        yield what if _expert_is_ood(s) else what + higher
    elif gain >= min(NOTABLE, plain):  # ten points more, or twice as much
        near = f"{_of_episodes(s.returns.top, s)} a return near the best (within a tenth of the range)"
        yield f"{near}: {sampled}."
    elif plain >= 0.5 and gain > -NOTABLE:
        already = f"{_fraction(plain)} of the steps are from episodes near the best return already"
        yield f"{already}: weighting changes little."


def _on_returns(s: Statistics) -> Iterator[str]:
    if s.noise.noise <= 0:
        yield "With a noise of 0 the regularizer uses the best return as the target and never more."
    if s.noise.episodes < FEW_NOISY and s.episodes >= FEW_EPISODES and not _rare(s):
        more = f"a --percentile below {s.regularizer.percentile:g} includes more"
        yield f"The regularizer adds noise to {counted(s.noise.episodes, 'episode')} only; {more}."
    if s.returns.mean - s.by_length.mean_return > NOTABLE * s.returns.range:
        means = f"{amount(s.by_length.mean_return)} sampled by length, {amount(s.returns.mean)} per episode"
        few = "High returns are in short episodes, and sampling by length sees few of them"
        yield f"{few}: the mean return is {means}. Weighting by return ignores the length."
    if s.returns.best <= 0:
        yield f"No return is above zero: a higher target is a smaller loss, {amount(s.returns.best)} at best."
    if s.rewards.constant:
        yield f"Every reward is {amount(s.rewards.min)}: a return is only the length of its episode."


def _on_dimensions(s: Statistics) -> Iterator[str]:
    if constant := [each.name for each in s.observations if each.constant]:
        effect = "they have no information, and a change while acting would be out of distribution"
        yield f"{_never('change', 'observation', constant)}: {effect}."
    if constant := [each.name for each in s.actions if each.constant]:
        yield f"{_never('change', 'action', constant)}: every policy will output only that."
    elif never := [str(action) for action, count in enumerate(s.action_counts) if not count]:
        yield f"{_never('occur', 'action', never)}: no policy will learn when to take such an action."
    reach = {each.name: max(-each.min, each.max) for each in s.actions}
    if reach and max(reach.values()) > 1 + 1e-6:
        widest = max(reach, key=lambda name: reach[name])
        scale = "policies act on the scale of the data, and an environment with narrower bounds clips them"
        yield f"Actions reach {amount(reach[widest])} ({widest}), beyond [−1, 1]: {scale}."


def _on_environment(s: Statistics) -> Iterator[str]:
    if s.environment is None:
        if s.image_shape:
            yield "No environment is known: training works, evaluation needs --env ID."
        else:
            yield "No environment is known: returns are estimated from the data, unless --env ID names one."
    if s.time_limit is None:
        known = f"No time limit is known; the longest episode, {counted(s.horizon, 'step')}, is used instead"
        if s.lengths.look_limited:
            there = f"{s.lengths.terminated_at_longest:,} of {s.lengths.terminated:,} terminations are there"
            yield f"{known}. {there}: if that is the limit, import with --time-limit {s.horizon}."
        else:
            yield f"{known} (rvs is conditioned on the return-to-go per remaining step)."
    elif s.lengths.max > s.time_limit:
        limit = f"the time limit of {s.environment or 'the environment'} is {s.time_limit:,}"
        yield f"Episodes have up to {s.lengths.max:,} steps, but {limit}. Is it the right one?"


def _next(s: Statistics, dataset: str) -> str:
    name, is_evaluated = shlex.quote(dataset), s.environment is not None or not s.image_shape
    if s.returns.equal:
        return f"Next: `cwbc {'compare' if is_evaluated else 'train'} {name} bc`"
    options = ""
    if s.environment is not None and ":" in s.environment:  # a module, which no file may choose to import
        options = f" --env {shlex.quote(s.environment)}"
    for choice, default in ((s.weighting, ByReturn()), (s.regularizer, Conservative())):
        for field, value in vars(choice).items():
            if value != vars(default)[field]:
                options += f" --{field.replace('_', '-')} {value}"
    if not is_evaluated:
        return f"Next: `cwbc train {name} rvs+cwbc{options}`"
    if s.returns.counts_successes:
        return f"Next: `cwbc compare {name} bc rvs rvs+w{options}` shows the effect of target and weighting."
    return f"Next: `cwbc compare {name} rvs rvs+cwbc{options}` shows the effect of weighting and regularizer."


def _outlier(s: Statistics) -> bool:
    # Of two distinct returns the higher is no outlier but the only success, which _on_top is about.
    if s.returns.next_best is None or s.returns.distinct < 3 or s.episodes < FEW_EPISODES:
        return False
    gap = s.returns.best - s.returns.next_best
    return s.returns.at_best == s.bin_episodes[-1] == 1 and gap > 0.25 * s.returns.range


def _rare(s: Statistics) -> bool:
    """Whether so many episodes tie at the min return that the regularizer selects only those above it."""
    return s.regularizer.percentile > 0 and s.noise.threshold == s.returns.min


def _ties(s: Statistics) -> bool:
    return s.returns.at_best > 1 and dict(s.returns.percentiles)[95] == s.returns.best


def _expert_is_ood(s: Statistics) -> bool:
    return s.scores is not None and s.scores.expert_return > s.returns.best


def _of_episodes(count: int, s: Statistics) -> str:
    return f"{count:,} of {s.episodes:,} episodes {'has' if count == 1 else 'have'}"


def _fraction(value: float) -> str:
    if 0.995 <= value < 1 - 1e-12:
        return f"over 99{PERCENT}"
    return percent(value) if value >= 0.1 else f"{100 * value:.2g}{PERCENT}"


def _never(verb: str, kind: str, names: list[str]) -> str:
    some = ", ".join(names if len(names) <= 3 else [*names[:3], f"and {len(names) - 3} more"])
    return f"{counted(len(names), kind)} never {verb}{'s' * (len(names) == 1)} ({some})"
