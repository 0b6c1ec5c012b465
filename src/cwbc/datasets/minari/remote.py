"""Downloads from Minari's remote, with the minari package itself."""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import sys
from collections.abc import Iterator

from cwbc.datasets.minari.places import (
    ROOT,
    check_id,
    check_place,
    datasets_below,
    is_dataset,
    local,
    put,
    root_folder,
    unwarned,
)
from cwbc.errors import InputError, install, need_extra
from cwbc.files import folder_aside

REMOTE = "MINARI_REMOTE"  # Minari's environment variable for where datasets are downloaded from
_PATIENCE = 10.0  # seconds for a first answer; the packages below wait for minutes, or forever


def download(name: str, overwrite: bool = False) -> None:
    """Bring a dataset from Minari's remote to Minari's own place; one that is there stays, unless asked."""
    check_id(name)
    if local(name) is not None and not overwrite:
        return
    check_place(name, overwrite)
    with unwarned():
        minari = need_extra("minari", "minari", "Minari datasets")
    root = root_folder()
    root.mkdir(parents=True, exist_ok=True)
    # Aside: Minari takes whatever is in the place of a dataset, such as a part of it, for the whole.
    with folder_aside(root) as aside:
        try:
            with _quiet(), _environment_variable(ROOT, str(aside)):
                _reach_remote()
                minari.download_dataset(name)
        except Exception as error:  # a network, a server, and three packages: anything at all
            raise _not_downloaded(name, error) from error
        arrived = list(datasets_below(aside))  # several, where one combines others
        for path in (*arrived, *aside.rglob("namespace_metadata.json")):
            place = root / path.relative_to(aside)
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists() or (overwrite and is_dataset(place)):
                put(path, place, aside / "replaced")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """A download also prints what it does; its bars are left to terminals."""
    aside = io.StringIO()
    errors = sys.stderr if sys.stderr.isatty() else aside
    with unwarned(), contextlib.redirect_stdout(aside), contextlib.redirect_stderr(errors):
        yield


@contextlib.contextmanager
def _environment_variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _reach_remote() -> None:
    """Fail soon where nothing answers: listing the remote sets no time limit, and tries six times."""
    from minari.storage.remotes import DEFAULT_REMOTE

    if os.environ.get(REMOTE, DEFAULT_REMOTE).startswith("hf://"):
        from huggingface_hub import constants, get_session

        get_session().head(constants.ENDPOINT, timeout=_PATIENCE)


def _not_downloaded(name: str, error: Exception) -> InputError:
    if isinstance(error, ImportError):
        return InputError(f"downloading {name} needs more packages: {install('minari')} ({error})")
    if type(error) is ValueError and (known := _remote_names()) and name not in known:
        return _unknown(name, known)
    text = " ".join(str(error).split())[:300] or type(error).__name__
    return InputError(
        f"{name} cannot be downloaded from Minari's remote: {text}; is the network there? "
        f"{REMOTE} names another remote, HF_ENDPOINT a mirror of this one"
    )


def _remote_names() -> list[str]:
    try:
        from minari.storage.remotes import get_cloud_storage

        with _quiet():
            return sorted(get_cloud_storage().list_datasets())
    except Exception:  # the list is only for a better hint
        return []


def _unknown(name: str, known: list[str]) -> InputError:
    versions = [other for other in known if other.rpartition("-v")[0] == name.rpartition("-v")[0]]
    if versions:
        return InputError(f"there is no Minari dataset {name!r}; the remote has {', '.join(versions)}")
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "`minari list remote` shows all"
    return InputError(f"there is no Minari dataset {name!r}; {hint}")
