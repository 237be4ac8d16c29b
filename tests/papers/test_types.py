"""The section of a report as a type, and as the one string that JSON and the library hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.answer_types import ANALYSIS, SUMMARY, Section


@pytest.mark.parametrize(
    ("section", "written"),
    [
        (Section(), ""), (SUMMARY, "Summary"), (ANALYSIS, "Analysis"), (Section("Analysis", "Melt"), "Analysis/Melt"),
        (Section("Analysis", "ice/alps.pdf"), "Analysis/ice/alps.pdf"),
    ],
)  # fmt: skip
def test_a_section_is_written_as_one_string(section: Section, written: str) -> None:
    assert str(section) == written
    assert Section.parse(written) == section


@given(st.text())
def test_any_subheading_survives_being_written(subheading: str) -> None:
    assert Section.parse(str(Section("Analysis", subheading))) == Section("Analysis", subheading)


@pytest.mark.parametrize("written", ["Melt", "/Melt", "analysis", "Analysis Melt"])
def test_only_the_summary_and_the_analysis_are_sections(written: str) -> None:
    with pytest.raises(ValueError, match="Broken contract"):
        Section.parse(written)
