"""Minari's datasets: those in its own folder, which need no package of its, and downloads from its remote."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cwbc.data import store
from cwbc.data.formats.columns import BY_NAME
from cwbc.data.sources import DatasetSource, Offer, Remote
from cwbc.system.errors import InputError, install, need_extra, unknown
from cwbc.system.files import folder_aside

if TYPE_CHECKING:
    from cwbc.data.checks import Recording
    from cwbc.data.sources import ReadOptions
    from cwbc.system.progress import Progress

ROOT = "MINARI_DATASETS_PATH"  # Minari's environment variable for the folder of its datasets
REMOTE = "MINARI_REMOTE"  # Minari's environment variable for its remote
_TIMEOUT = 10.0  # seconds for a first answer; the packages below wait for minutes, or forever
_ID = re.compile(r"(?![-\w]/[^/]*$)([-\w]+/)*[-\w]+-v\d+")  # Minari accepts no namespace of one letter


def root() -> Path:
    """Minari's own folder."""
    return Path(os.environ.get(ROOT) or Path.home() / ".minari" / "datasets")


def is_id(name: str) -> bool:
    """Whether a Minari dataset can have this id."""
    return _ID.fullmatch(name) is not None


def is_dataset(path: Path) -> bool:
    """Whether a folder has Minari's layout."""
    return os.path.isfile(path / "data" / "metadata.json")  # False also for names that no file can have


def has(name: str) -> bool:
    """Whether Minari's own folder has a dataset with this id."""
    return is_id(name) and is_dataset(root() / name)


def names() -> list[str]:
    """The ids of all datasets in Minari's own folder."""
    found = (path.relative_to(root()).as_posix() for path in _datasets_below(root()))
    return sorted(filter(is_id, found))


def _datasets_below(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """The folders in Minari's layout below a folder."""
    real = folder.resolve()
    with contextlib.suppress(OSError):  # missing, or not readable
        for path in folder.iterdir() if real not in above else ():  # not again below a link to a parent
            if path.is_dir() and not path.name.startswith("."):
                yield from [path] if is_dataset(path) else _datasets_below(path, above | {real})


def check_id(name: str) -> None:
    """Refuse a name that cannot be an id."""
    if not is_id(name):
        parts = (part.strip("-") for part in re.sub(r"[^-\w/]+", "-", name).split("/"))
        likely = "/".join(filter(None, parts))
        likely = likely if re.search(r"-v\d+$", likely) else f"{likely}-v0"
        example = likely if is_id(likely) else "namespace/name-v0"
        raise InputError(f"{name!r} is not an id of a Minari dataset; one is like {example!r}")


def check_place(dataset_id: str, overwrite: bool) -> None:
    """Refuse an id that is taken, or whose folder is."""
    folder = root() / dataset_id
    if is_dataset(folder):
        if not overwrite:
            raise InputError(f"there is a Minari dataset {dataset_id} already; --overwrite replaces it")
    elif folder.exists():
        raise InputError(f"{folder} is not a Minari dataset; remove it, or choose another id")
    for parent in list(Path(dataset_id).parents)[:-1]:
        if is_dataset(root() / parent):
            raise InputError(f"{parent.as_posix()} is a Minari dataset; {dataset_id} cannot be below it")


def put(written: Path, folder: Path, replaced: Path) -> None:
    """Move a complete dataset to its folder, and an older one aside."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists():
        os.replace(folder, replaced)
    try:
        os.replace(written, folder)
    except BaseException:
        if replaced.exists():
            os.replace(replaced, folder)
        raise


def adapter() -> ModuleType:
    """The module that reads and writes datasets, which needs Gymnasium, as Minari itself does."""
    need_extra("gymnasium", "minari", "Minari datasets")
    return importlib.import_module("cwbc.data.formats.minari")


def download(dataset_id: str, overwrite: bool = False) -> None:
    """Download a dataset from Minari's remote to Minari's own folder; an existing one stays."""
    check_id(dataset_id)
    if has(dataset_id) and not overwrite:
        return
    check_place(dataset_id, overwrite)
    with warnings.catch_warnings(action="ignore"):
        minari = need_extra("minari", "minari", "Minari datasets")
    root().mkdir(parents=True, exist_ok=True)
    # Aside: Minari would take an incomplete dataset in its folder for a complete one.
    with folder_aside(root()) as aside:
        place, before = root(), os.environ.get(ROOT)
        os.environ[ROOT] = str(aside)
        try:
            with _quiet():
                _reach_remote()
                minari.download_dataset(dataset_id)
        except Exception as error:  # a network, a server, and three packages: anything
            raise _not_downloaded(dataset_id, error) from error
        finally:
            del os.environ[ROOT]
            os.environ.update({} if before is None else {ROOT: before})
        arrived = list(_datasets_below(aside))  # several, where one combines others
        for path in (*arrived, *aside.rglob("namespace_metadata.json")):
            target = place / path.relative_to(aside)
            if not target.exists() or (overwrite and is_dataset(target)):
                put(path, target, aside / "replaced")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress what a download prints; its progress bars are for terminals."""
    aside = io.StringIO()
    errors = sys.stderr if sys.stderr.isatty() else aside
    no_warnings = warnings.catch_warnings(action="ignore")
    with no_warnings, contextlib.redirect_stdout(aside), contextlib.redirect_stderr(errors):
        yield


def _reach_remote() -> None:
    """Fail soon where nothing answers: listing the remote sets no time limit, and tries six times."""
    from minari.storage.remotes import DEFAULT_REMOTE

    if os.environ.get(REMOTE, DEFAULT_REMOTE).startswith("hf://"):
        from huggingface_hub import constants, get_session

        get_session().head(constants.ENDPOINT, timeout=_TIMEOUT)


def _not_downloaded(name: str, error: Exception) -> InputError:
    if isinstance(error, ImportError):
        return InputError(f"downloading {name} needs more packages: {install('minari')} ({error})")
    known: list[str] = []
    if type(error) is ValueError:
        with contextlib.suppress(Exception), _quiet():  # the list is only for a better hint
            from minari.storage.remotes import get_cloud_storage

            known = list(get_cloud_storage().list_datasets())
    if known and name not in known:
        return unknown("Minari dataset", name, known)
    text = " ".join(str(error).split())[:300] or type(error).__name__
    return InputError(
        f"{name} cannot be downloaded from Minari's remote: {text}; is there a network? "
        f"{REMOTE} names another remote, HF_ENDPOINT a mirror of this one"
    )


def _offers() -> Iterator[Offer]:
    for name in names():
        cells = ("", "")
        # What its metadata has; a damaged one is listed without.
        with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
            metadata = json.loads((root() / name / "data" / "metadata.json").read_bytes())
            counts = (metadata.get("total_episodes"), metadata.get("total_steps"))
            if all(isinstance(count, int) for count in counts):
                cells = (f"{counts[0]:,}", f"{counts[1]:,}")
        yield Offer(name, cells)


def _read(name: str, options: ReadOptions, progress: Progress | None) -> Recording:
    return adapter().read(root() / name, name)


def _hint(name: str) -> str | None:
    hint = f"unknown dataset {name!r}; if it is one of Minari's, `cwbc data download {name}` downloads it"
    return hint if is_id(name) and "/" in name else None


def _download(
    name: str, url: str | None, overwrite: bool, progress: Progress | None
) -> tuple[store.Entry, str]:
    """Download a dataset to Minari's own folder, and store a copy of it."""
    if url is not None:
        raise InputError(f"--url is for D4RL's datasets; {name} is downloaded from Minari's remote")
    store.check_name(name, overwrite)
    download(name, overwrite)
    data = SOURCE.read(name, BY_NAME, progress).trusted()
    return store.add(data, f"Minari's {name}", overwrite), ""


SOURCE = DatasetSource(
    key="minari",
    headings=("in Minari's own folder", "episodes", "steps"),
    offers=_offers,
    names=names,
    has=has,
    read=_read,
    hint=_hint,
    remote=Remote(lambda name: "/" in name, _download, unit=None),
)
