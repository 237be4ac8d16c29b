"""Words for what became of a statement, and for the evidence of a deep answer. The page's are in statement.js."""

from __future__ import annotations

from collections.abc import Sequence

from folio.shown_text import REWORDED_SIGN, name_line

IN_PLACE = "In place of a statement that the papers do not support:"
LEFT_OUT = "Left out"
MAY_NOT_ANSWER = "These are about the topic, and may not answer the question."
AGREE, DIFFER, OPEN = "Where the papers agree", "Where they differ", "Open questions"
AGE_AND_CONFIDENCE, ABOUT_EVIDENCE = "Age and confidence of the evidence", "About the evidence"
PROFILE_HEADINGS = (AGREE, DIFFER, OPEN, AGE_AND_CONFIDENCE, ABOUT_EVIDENCE)
REASONS_NOT_KEPT = "The statements that were left out were not kept with this answer."


def legend(verifiers: Sequence[str]) -> str:
    """What the sign before a reworded statement means; "" if there is none.

    verifiers: of each reworded statement, the verifier that agreed with it; "" where none ran.
    """
    if not verifiers:
        return ""
    unchecked = verifiers.count("")
    names = ", ".join(name_line(name) for name in dict.fromkeys(verifiers) if name)
    if unchecked == len(verifiers):
        checked = "Not checked by a verifier."
    elif unchecked:
        checked = f"{unchecked} of {len(verifiers)} not checked by a verifier, the others by {names}."
    else:
        checked = f"Checked by {names}."
    return f"{REWORDED_SIGN} in the model's own words; the quote stands beneath. {checked}"
