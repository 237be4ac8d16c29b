"""A notice comes once a day, whoever asks."""

from __future__ import annotations

import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

from folio.model_choice import is_first_today
from folio.system.files import make_private
from tests.helpers.permissions import read_only_tree

MONDAY, TUESDAY = date(2026, 11, 23), date(2026, 11, 24)


def test_the_first_of_a_day_is_told(tmp_path: Path) -> None:
    assert [is_first_today(tmp_path, day) for day in (MONDAY, MONDAY, TUESDAY, TUESDAY)] == [True, False, True, False]
    assert [path.name for path in tmp_path.iterdir()] == ["announced-2026-11-24"]


def test_one_of_many_at_once_is_the_first(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: is_first_today(tmp_path, MONDAY), range(40)))
    assert sum(told) == 1


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    assert is_first_today(tmp_path / "missing", MONDAY)
    assert not (tmp_path / "missing").exists()
    with read_only_tree(tmp_path):
        assert is_first_today(tmp_path, MONDAY)
        assert is_first_today(tmp_path, MONDAY)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_the_mark_is_the_stores_and_private(tmp_path: Path) -> None:
    assert is_first_today(tmp_path, MONDAY)
    (mark,) = tmp_path.iterdir()
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600
    tmp_path.chmod(0o755)
    make_private(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
