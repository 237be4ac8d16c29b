"""How well a model judges statements: forty that are plainly true or false, each with the sentence it is about.

A model that says yes to whatever it wrote is no judge of it. The false statements have the words of their sentence, so
that the rules of grounding/ pass them: another subject, another relation, more than is said.
"""

from __future__ import annotations

from collections.abc import Iterator

from folio.protocols import Claim

# A model judges statements if it is right on this many of the forty. Guessing gives 20; qwen2.5-coder:1.5b had 25.
LEAST_RIGHT = 30
# Sentence, what follows from it, what does not
_TRIALS = (
    (
        "Mussels grew faster in the shaded plots than in the open ones, although the water was equally warm.",
        "Shade went together with faster growth of the mussels.",
        "Warmer water made the mussels in the shade grow faster.",
    ),
    (
        "We asked the nurses, not the patients, to rate the pain after each dressing change.",
        "The nurses rated the pain.",
        "The patients rated the pain.",
    ),
    (
        "The index is rebuilt only when a file has changed; otherwise the stored one is opened.",
        "An unchanged file causes no rebuild of the index.",
        "The index is rebuilt whenever it is opened.",
    ),
    (
        "Seedlings from the northern source survived the frost, while most of those from the southern source died.",
        "Most southern seedlings died in the frost.",
        "Most northern seedlings died in the frost.",
    ),
    (
        "The authors suggest that noise may explain the higher pitch of the birds, but did not measure it.",
        "Noise was not measured.",
        "Measured noise explains the higher pitch of the birds.",
    ),
    (
        "Unlike the reference implementation, ours keeps the table in memory and writes it at the end.",
        "Our implementation writes the table at the end.",
        "The reference implementation writes the table at the end.",
    ),
    (
        "Teachers received the materials before the course, students on its first day.",
        "Students got the materials when the course began.",
        "Students received the materials before the course.",
    ),
    (
        "The second sensor lowered the error of the depth estimate but made the device heavier.",
        "With the second sensor the depth was estimated better.",
        "With the second sensor the device was lighter.",
    ),
    (
        "The drug was given by mouth to the first group and by injection to the second.",
        "The second group got injections.",
        "The drug was given by injection to the first group.",
    ),
    (
        "Villages with a clinic reported more cases, probably because more of them were noticed there.",
        "More cases may have been noticed where there was a clinic.",
        "Clinics caused more cases in the villages.",
    ),
    (
        "Of the three solvents, ethanol dissolved the resin best; acetone left a residue.",
        "Ethanol was the best solvent for the resin.",
        "Acetone dissolved the resin best.",
    ),
    (
        "A request that arrives while a leader is elected is answered after the election.",
        "Requests wait until the election is over.",
        "A request that arrives during an election is refused.",
    ),
    (
        "Older participants remembered fewer words, but recognised as many pictures as younger ones.",
        "Older and younger participants recognised equally many pictures.",
        "Older participants recognised fewer pictures than younger ones.",
    ),
    (
        "The model was trained on photographs and tested on drawings.",
        "The test used drawings.",
        "The model was trained on drawings.",
    ),
    (
        "Meltwater of the glacier feeds the river in summer; in winter, groundwater does.",
        "Groundwater feeds the river in winter.",
        "Meltwater of the glacier feeds the river in winter.",
    ),
    (
        "The committee rejected the first proposal and returned the second for revision.",
        "The second proposal had to be revised.",
        "The committee rejected the second proposal.",
    ),
    (
        "Bees visited the blue flowers more often than the yellow ones only when both held nectar.",
        "With nectar in both, bees preferred the blue flowers.",
        "Bees preferred the blue flowers whether or not they held nectar.",
    ),
    (
        "Encryption happens on the sender's computer; the server stores only what is already encrypted.",
        "What the server stores was encrypted by the sender.",
        "The server encrypts what it stores.",
    ),
    (
        "Sleep was equally long in both groups, but the treated group woke up less often.",
        "The treated group woke up less often.",
        "The treated group slept longer.",
    ),
    (
        "Parents filled in the questionnaire for children who could not yet read.",
        "Children who could not read had the questionnaire filled in by their parents.",
        "Children filled in the questionnaire for their parents.",
    ),
)


def trials() -> Iterator[tuple[Claim, bool]]:
    """The forty claims, each with whether it is true."""
    for sentence, true, false in _TRIALS:
        yield Claim(true, sentence), True
        yield Claim(false, sentence), False
