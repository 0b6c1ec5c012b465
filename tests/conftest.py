"""What many tests share: compiled programs, small trajectories, and files in D4RL's layout."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import hypothesis
import jax
import numpy as np
import pytest
from numpy.typing import ArrayLike

from cwbc.core.trajectories import Trajectories
from cwbc.data.formats.arrays import from_arrays

COMPILED = "JAX_COMPILATION_CACHE_DIR"
# Programs of tests run for milliseconds and compile for seconds: this saves a third of the time of all tests.
COMPILE_QUICKLY = "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false"
MOST_MEMORY = 1.5e9  # bytes of a process, beyond which its compiled programs are dropped

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("cwbc", deadline=None)
hypothesis.settings.load_profile("cwbc")


def pytest_configure(config: pytest.Config) -> None:
    """Compiling takes most of the time: what one process has compiled, the others read, for this session."""
    if COMPILED in os.environ:  # one's own, or the session's in a process that it has started
        return
    folder = tempfile.TemporaryDirectory(prefix="cwbc-compiled-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    os.environ |= {
        COMPILED: folder.name,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "XLA_FLAGS": f"{COMPILE_QUICKLY} {os.environ.get('XLA_FLAGS', '')}",
    }


@pytest.fixture(scope="module", autouse=True)
def few_programs() -> Iterator[None]:
    """Drop compiled programs where they take much memory: of all tests they would take 4 GB a process."""
    yield
    pages = Path("/proc/self/statm")  # Linux
    if pages.exists() and int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") > MOST_MEMORY:
        jax.clear_caches()  # type: ignore[no-untyped-call]


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports with empty PNG files: drawing these takes longer than the rest of a report."""
    monkeypatch.setattr("cwbc.reports.report.picture", lambda *_: b"")


def logged(*rewards: ArrayLike, name: str = "logged", **settings: Any) -> Trajectories:
    """One episode per sequence of rewards; observations and actions contain the number of their row."""
    episodes = [np.asarray(each, np.float64) for each in rewards]
    steps = np.concatenate(episodes)
    rows = np.arange(len(steps))
    ends = np.zeros(len(steps), bool)
    ends[np.cumsum([len(episode) for episode in episodes]) - 1] = True
    observations = np.stack([rows, np.sin(rows)], axis=1)
    actions = (rows / len(rows))[:, None]
    return from_arrays(name, observations, actions, steps, ends, np.zeros_like(ends), **settings)


def with_returns(*returns: float, **settings: Any) -> Trajectories:
    """Episodes of one step each, with these returns."""
    return logged(*([each] for each in returns), **settings)


def d4rl_arrays(**changes: Any) -> dict[str, Any]:
    """Three episodes (of 3, 1 and 2 steps; the second hits a time limit) as D4RL stores them."""
    arrays = {
        "observations": np.arange(18, dtype=np.float32).reshape(6, 3),
        "actions": np.linspace(-1, 1, 12, dtype=np.float32).reshape(6, 2),
        "rewards": np.array([1, 2, 3, 10, -1, 0.5], np.float32),
        "terminals": np.array([0, 0, 1, 0, 0, 1], bool),
        "timeouts": np.array([0, 0, 0, 1, 0, 0], bool),
    }
    return {key: array for key, array in (arrays | changes).items() if array is not None}


def write_d4rl(path: Path, env: str | bytes | None = None, **changes: Any) -> Path:
    """A file of d4rl_arrays; a key that is changed to None is left out."""
    with h5py.File(path, "w") as file:
        for key, array in d4rl_arrays(**changes).items():
            file[key] = array
        if env is not None:
            file.attrs["env"] = env
    return path
