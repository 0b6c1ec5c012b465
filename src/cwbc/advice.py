"""What a description means for training, in plain words: each sentence holds whenever its condition does."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from cwbc.checks import NOTHING_TO_LEARN, looks_like_limit
from cwbc.description import Description
from cwbc.regularizers import Conservative
from cwbc.weighting import ByReturn
from cwbc.wording import PERCENT, amount, counted, percent

FEW_EPISODES = 20
FEW_RAISED = 5  # episodes that the regularizer rests on
NOTABLE = 0.1  # a share of the draws, or of the return range, that is worth a word
MISSING_ENDS = 0.05  # the part of the steps behind the last episode end that looks like a mistake


def advice(description: Description, dataset: str | None = None) -> list[str]:
    """What to know before training, the most important first; the last line is a command to go on with.

    Args:
        dataset: how the command names the dataset; by default its name.
    """
    rules = [*_FIRST, *([] if description.returns.equal else _ON_RETURNS), *_LAST]
    said = [sentence for rule in rules if (sentence := rule(description))]
    return [*said, _next(description, dataset or description.name)]


def _single_steps(d: Description) -> str | None:
    if d.lengths.longest > 1:
        return None
    return (
        "Every episode is a single step. If that is wrong, check how the episode ends are marked; "
        "if it is right, dt has no past to look at, and rvs is enough."
    )


def _equal_returns(d: Description) -> str | None:
    if not d.returns.equal:
        return None
    about = "" if d.returns.lowest == d.returns.best else "about "
    who = "The only episode returns" if d.episodes == 1 else f"All {d.episodes:,} episodes return"
    return (
        f"{who} {about}{amount(d.returns.best)}: there is no better or worse to tell apart, so "
        f"{NOTHING_TO_LEARN}. Plain bc is the honest choice."
    )


def _few_episodes(d: Description) -> str | None:
    if d.episodes >= FEW_EPISODES:
        return None
    count = counted(d.episodes, "episode")
    return f"Only {count}: percentiles, bins and all that is learned rest on very little."


def _missing_ends(d: Description) -> str | None:
    share = d.unfinished_steps / (d.steps + d.unfinished_steps)
    if share < MISSING_ENDS:
        return None
    return (
        f"{_share(share)} of the steps are kept out, as no episode end follows them. "
        "Are ends missing in the source?"
    )


def _outlier(d: Description) -> str | None:
    if not _stands_out(d) or d.returns.next_best is None:
        return None
    told = (
        f"One episode stands far above the rest: it returns {amount(d.returns.best)}, "
        f"the next {amount(d.returns.next_best)}."
    )
    if d.by_return.top_share < NOTABLE:
        return f"{told} Is it genuine?"
    return (
        f"{told} Weighting draws it {_share(d.by_return.top_share)} of the time; a larger --smoothing or "
        "--temperature draws it less."
    )


def _concentrated(d: Description) -> str | None:
    with_weighting, without = d.by_return.effective_episodes, d.by_length.effective_episodes
    if with_weighting >= FEW_EPISODES or with_weighting > without / 2:
        return None
    if _stands_out(d) or _rare(d) or _ties(d):  # where few are good, to draw these few is the point
        return None
    return (
        f"Weighting draws as if there were only {counted(round(with_weighting), 'episode')}, "
        f"not {without:,.0f}. A --temperature above {amount(d.temperature)} prefers high returns less, "
        f"a --smoothing above {d.weighting.smoothing:g} prefers rare returns less."
    )


def _beyond(d: Description) -> str | None:
    if d.scores is None or not _expert_beyond(d):
        return None
    return (
        f"The expert return, {amount(d.scores.expert_return)}, lies beyond the best in the data, "
        f"{amount(d.returns.best)}. Asked for that much, plain rvs tends to collapse; this is what +c is for."
    )


def _top(d: Description) -> str | None:
    if _stands_out(d):
        return None
    if _rare(d):
        return (
            f"Above the lowest return, {amount(d.returns.lowest)}, {_lie(d.raised.episodes, d)}; "
            f"the regularizer raises no others. The best get {_shares(d)}."
        )
    if _ties(d):
        return _tied(d)
    if _gain(d) >= min(NOTABLE, d.by_length.top_share):  # ten points more, or twice as much
        return f"Near the best return (within a tenth of the range) {_lie(d.returns.top, d)}: {_shares(d)}."
    if d.by_length.top_share >= 0.5 and _gain(d) > -NOTABLE:
        return (
            f"{_share(d.by_length.top_share)} of the steps are from episodes near the best return already: "
            "weighting has little to add."
        )
    return None


def _tied(d: Description) -> str:
    ties = f"{d.returns.at_best:,} of {d.episodes:,} episodes"
    told = f"The top 5{PERCENT} tie at {amount(d.returns.best)}: {ties}"
    told = f"{told}, {_shares(d)}." if _gain(d) >= NOTABLE else f"{told}."
    if _expert_beyond(d):
        return told
    work = "weighting does the work, and the regularizer" if _gain(d) >= NOTABLE else "the regularizer does"
    return f"{told} If that is all there is to earn, ask for no more; then {work} little."


def _weighting_lowers(d: Description) -> str | None:
    if d.by_return.mean_return >= d.by_length.mean_return - 0.02 * _spread(d):
        return None
    return (
        f"Weighting lowers the mean return of what is drawn, from {amount(d.by_length.mean_return)} to "
        f"{amount(d.by_return.mean_return)}. A --temperature below {amount(d.temperature)} prefers high "
        "returns more."
    )


def _no_noise(d: Description) -> str | None:
    if d.raised.noise > 0:
        return None
    return "With a noise of 0 the regularizer raises targets to the best return and never beyond it."


def _few_raised(d: Description) -> str | None:
    if d.raised.episodes >= FEW_RAISED or d.episodes < FEW_EPISODES or _rare(d):
        return None
    return (
        f"The regularizer rests on {counted(d.raised.episodes, 'episode')} only; "
        f"a --percentile below {d.regularizer.percentile:g} takes in more."
    )


def _short_successes(d: Description) -> str | None:
    if d.returns.mean - d.by_length.mean_return <= NOTABLE * _spread(d):
        return None
    return (
        "High returns come in short episodes, and drawing by length sees few of them: the mean return is "
        f"{amount(d.by_length.mean_return)} drawn so, {amount(d.returns.mean)} per episode. "
        "Weighting does not look at the length."
    )


def _never_positive(d: Description) -> str | None:
    if d.returns.best > 0:
        return None
    best = amount(d.returns.best)
    return f"No return is above zero: to ask for more is to ask for a smaller loss, {best} at best."


def _constant_reward(d: Description) -> str | None:
    if d.rewards.lowest < d.rewards.highest:
        return None
    reward = amount(d.rewards.lowest)
    return f"Every reward is {reward}: a return tells how long an episode lasted, and nothing else."


def _constant_observations(d: Description) -> str | None:
    constant = [column.name for column in d.observations if column.lowest == column.highest]
    if not constant:
        return None
    return (
        f"{_never('change', 'observation', constant)}: that tells nothing now, and a change in use would "
        "throw a policy off."
    )


def _unused_actions(d: Description) -> str | None:
    if constant := [column.name for column in d.actions if column.lowest == column.highest]:
        return f"{_never('change', 'action', constant)}: every policy will keep to that."
    if never := [str(action) for action, count in enumerate(d.action_counts) if not count]:
        return f"{_never('occur', 'action', never)}: no policy will learn when to take such an action."
    return None


def _wide_actions(d: Description) -> str | None:
    reach = {column.name: max(-column.lowest, column.highest) for column in d.actions}
    if not reach or max(reach.values()) <= 1 + 1e-6:
        return None
    widest = max(reach, key=lambda name: reach[name])
    return (
        f"Actions reach {amount(reach[widest])} ({widest}), beyond [−1, 1]: policies act on the scale of the "
        "data, and an environment with narrower bounds clips them."
    )


def _unknown_environment(d: Description) -> str | None:
    if d.environment is not None:
        return None
    return "No environment is known: training works, measuring needs --env ID."


def _unknown_limit(d: Description) -> str | None:
    if d.time_limit is None:
        known = f"No time limit is known; the longest episode, {counted(d.horizon, 'step')}, stands in for it"
        ends, there = d.lengths.terminated, d.lengths.terminated_at_longest
        if looks_like_limit(ends, there, d.horizon):
            cure = f"if that is it, import with --time-limit {d.horizon}"
            return f"{known}. {there:,} of {ends:,} ends come there: {cure}."
        return f"{known} (rvs is told the return-to-go per step left)."
    if d.lengths.longest > d.time_limit:
        return (
            f"Episodes have up to {d.lengths.longest:,} steps, but {d.environment or 'the environment'} ends "
            f"them after {d.time_limit:,}. Is it the right one?"
        )
    return None


_Rules = Sequence[Callable[[Description], str | None]]
_FIRST: _Rules = (_single_steps, _equal_returns, _few_episodes, _missing_ends)
_ON_RETURNS: _Rules = (
    _outlier,
    _concentrated,
    _beyond,
    _top,
    _weighting_lowers,
    _no_noise,
    _few_raised,
    _short_successes,
    _never_positive,
    _constant_reward,
)  # these say nothing true where all returns are equal
_LAST: _Rules = (
    _constant_observations,
    _unused_actions,
    _wide_actions,
    _unknown_environment,
    _unknown_limit,
)


def _next(d: Description, dataset: str) -> str:
    name = shlex.quote(dataset)
    if d.returns.equal:
        return f"Next: `cwbc {'compare' if d.environment else 'train'} {name} bc`"
    options = _given(d.weighting, ByReturn()) + _given(d.regularizer, Conservative())
    if d.environment is not None and ":" in d.environment:  # a module, which no file may choose to import
        options = f" --env {shlex.quote(d.environment)}{options}"
    if d.environment is None:
        return f"Next: `cwbc train {name} rvs+cwbc{options}`"
    return f"Next: `cwbc compare {name} rvs rvs+cwbc{options}` shows what weighting and regularizer change."


def _given(choice: ByReturn | Conservative, default: ByReturn | Conservative) -> str:
    changed = {name: value for name, value in vars(choice).items() if value != vars(default)[name]}
    return "".join(f" --{name.replace('_', '-')} {value}" for name, value in changed.items())


def _stands_out(d: Description) -> bool:
    # Of two distinct returns the higher is no outlier but the one success, of which _top tells.
    if d.returns.next_best is None or d.returns.distinct < 3 or d.episodes < FEW_EPISODES:
        return False
    gap = d.returns.best - d.returns.next_best
    return d.returns.at_best == d.bin_episodes[-1] == 1 and gap > 0.25 * _spread(d)


def _rare(d: Description) -> bool:
    """Whether so many episodes tie at the lowest return that the regularizer takes only those above it."""
    return d.regularizer.percentile > 0 and d.raised.threshold == d.returns.lowest


def _ties(d: Description) -> bool:
    return d.returns.at_best > 1 and dict(d.returns.percentiles)[95] == d.returns.best


def _expert_beyond(d: Description) -> bool:
    return d.scores is not None and d.scores.expert_return > d.returns.best


def _spread(d: Description) -> float:
    return d.returns.best - d.returns.lowest


def _gain(d: Description) -> float:
    return d.by_return.top_share - d.by_length.top_share


def _shares(d: Description) -> str:
    without, with_weighting = _share(d.by_length.top_share), _share(d.by_return.top_share)
    return f"{without} of the draws without weighting, {with_weighting} with it"


def _lie(count: int, d: Description) -> str:
    return f"{'lies' if count == 1 else 'lie'} {count:,} of {d.episodes:,} episodes"


def _share(value: float) -> str:
    if 0.995 <= value < 1 - 1e-12:
        return f"over 99{PERCENT}"
    return percent(value) if value >= 0.1 else f"{100 * value:.2g}{PERCENT}"


def _never(verb: str, kind: str, names: list[str]) -> str:
    some = ", ".join(names if len(names) <= 3 else [*names[:3], f"and {len(names) - 3} more"])
    return f"{counted(len(names), kind)} never {verb}{'s' * (len(names) == 1)} ({some})"
