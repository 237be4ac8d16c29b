"""Recognises a model's statement that it found no answer. Pure."""

from __future__ import annotations

import re

from folio.answer_types import REFUSAL

_LONGEST = 1500  # characters to search; no sentence has more
_NOT = r"(?:\s+not|n['’]t)"
_SOURCES = (
    r"(?:evidence|context|passages?|excerpts?|sources?|information|material|text|snippets?"
    r"|(?:provided|given|available|supplied|above)\s+(?:\w+\s+)?(?:papers?|documents?|stud(?:y|ies)|articles?)"
    r"|(?:the|these|this|both|all|any)\s+(?:papers?|documents?|articles?))"
)
_TELL = (
    r"(?:mention|contain|state|provide|specify|include|answer|address|discuss|say|give|describe|cover|explain|tell"
    r"|have|offer|detail|define|indicate|directly|explicitly|clearly|specifically)"
)
_STATED = (
    r"(?:mentioned|stated|provided|specified|found|discussed|addressed|available|given|covered|described|included)"
)
_KNOWLEDGE = r"(?:information|mention|evidence|details?|data|reference|answer|statement)"

_ENGLISH = (
    r"^\W*(?:sorry|as an ai|(?:unfortunately,? )?(?:i['’]?m|i am) (?:sorry|afraid|unable))\b",
    r"(?<![\"“'‘])\b(?:i|we)\s+(?:(?:could|can|do|did)(?:\s*not|n['’]t)|can['’]t|(?:was|am|were|are)\s+unable\s+to)\s+"
    r"(?:\w+\s+)?(?:find|answer|determine|locate|see|know|have|provide|identify|tell|say)\b",
    # "The evidence provided does not mention ...", "None of the passages mention ..."
    rf"\b{_SOURCES}\b(?:\s+\S+){{0,12}}?\s+(?:do|does|did){_NOT}\s+(?:\w+ly\s+)?{_TELL}\b",
    rf"\b(?:none|neither)\s+of\s+(?:the|these|those)\s+(?:\w+\s+)?{_SOURCES}(?:\s+\w+)?\s+{_TELL}",
    # "It is not stated in the evidence", "Not mentioned in the passages"
    rf"\b(?:is|are|was|were){_NOT}\s+(?:\w+ly\s+)?{_STATED}\b.*\b(?:in|by|within)\s+(?:\w+\s+)?{_SOURCES}",
    rf"^\W*not\s+(?:\w+ly\s+)?{_STATED}\b",
    rf"\b(?:there\s+(?:is|are|was)|{_SOURCES}\s+(?:has|have|contains?|provides?|gives?|offers?))\s+no\s+(?:\w+\s+){{0,2}}"
    rf"{_KNOWLEDGE}\b\s+(?:\w+\s+){{0,2}}(?:{_SOURCES}|about|on|regarding|of|for|concerning|as to|in)\b",
    rf"\bno\s+(?:\w+\s+)?(?:information|mention|details?|answer)\b.*\b(?:{_STATED}|in\s+(?:\w+\s+)?{_SOURCES})\b",
    rf"\b(?:not|im)\s*possible\s+to\s+(?:answer|determine|say|tell|know)\b.*\b{_SOURCES}",
    rf"\b{_SOURCES}\b.*\b(?:not|im)\s*possible\s+to\s+(?:answer|determine|say|tell|know)\b",
    r"\b(?:cannot|can\s+not|can['’]t)\s+be\s+(?:answered|determined\s+from)\b",
    rf"\b{_SOURCES}\b.*\b(?:cannot|can\s+not|can['’]t)\s+be\s+(?:determined|found|inferred)\b",
    rf"\b(?:is|are|was|were){_NOT}\s+(?:{_STATED}\s+anywhere|in\s+(?:the\s+)?{_SOURCES})\b",
    rf"\b{_SOURCES}\s+(?:(?:says?|states?|tells?|contains?|mentions?)\s+nothing|(?:is|are)\s+silent)\b",
    rf"\bnothing\b.*\bin\s+(?:the\s+)?{_SOURCES}\W*$",
    r"^\W*(?:n/a|unknown|no answer(?: (?:found|available))?|not (?:known|applicable|answerable))\W*$",
    rf"\b{_SOURCES}\b.*\b(?:insufficient|not\s+(?:enough|sufficient))\s+to\b",
    r"\b(?:insufficient|not\s+enough)\s+(?:information|context)\b",
)
_OTHERS = (
    # German
    r"\b(?:ich (?:kann|konnte)|es (?:gibt|wurden?|finden sich))\b.*\b(?:nicht|keine?[nrs]?)\b",
    r"\b(?:quellen|belegen?|passagen|auszüge|textstellen|informationen|dokumenten?)\b.*\b(?:nichts?|keine?[nrs]?)\b",
    r"\b(?:nichts?|keine?[nrs]?)\b.*\b(?:quellen|belegen|passagen|auszügen|textstellen|dokumenten|arbeiten)\b",
    r"^\W*in den (?:\w+ )?(?:arbeiten|papieren|artikeln)\b.*\bnichts? (?:gefunden|enthalten|erwähnt)\b",
    # French
    r"\bje (?:ne|n['’]ai)\b.*\b(?:pas|rien)\b",
    r"\b(?:sources|passages|extraits|documents|preuves)\b.{0,200}\bne\b.{0,200}\b(?:pas|aucune?)\b",
    r"\baucune information\b",
    r"^\W*non trouvé\b|\bn['’](?:est|a) pas (?:été )?(?:mentionnée?|trouvée?|indiquée?)\b",
    # Spanish, Portuguese, Italian
    r"^\W*no (?:encontrad|mencionad)[oa]\b|^\W*não encontrad[oa]\b|^\W*non trovat[oa]\b",
    r"\bno (?:pude|puedo|he podido|encontré|hay información|se (?:menciona|especifica|encuentra|encontró)"
    r"|(?:menciona|especifica|contiene|proporciona|indica)n?)\b",
    r"\bnão (?:encontrei|consegui|posso|há informaç|é mencionad|menciona|contêm|contém)",
    r"\bnon (?:ho trovato|posso|è menzionat|viene menzionat|(?:specifica|menziona|indica)(?:no)?\b"
    r"|(?:ci sono|c['’]è|contengono|forniscono)\b.*\binformazion)",
    # Chinese, Japanese
    r"未提及|没有提到|未找到|找不到|无法(?:回答|确定)|没有(?:相关|提供|找到)|見つかりません|記載(?:されて|が)",
)
_EXACT = re.compile(rf"[\W_]*(?:(?:the )?(?:final )?answer\b(?: is)?[\W_]*)?{re.escape(REFUSAL.rstrip('.'))}\b", re.I)
_WEAK = re.compile("|".join((*_ENGLISH, *_OTHERS)), re.I | re.S)

# "The price is not given." With a marker it may state a fact: "The source code is not available [1]."
_WEAK_UNMARKED = re.compile(rf"\b(?:is|are|was|were){_NOT}\s+(?:\w+ly\s+)?{_STATED}\b\W*$", re.I)

# About the model: it does not know, or will not help. No word of the evidence.
_REGRET = r"(?:sorry|afraid|unfortunately|my\s+apologies|i\s+apologi[sz]e|as\s+an?\s+(?:ai|\w+\s+model)\b[^.]{0,60})"
_CANNOT = (
    r"i\s+(?:(?:do|can|could|will|would)(?:\s*not|n['’]t)|can['’]t|won['’]t|(?:am|was)\s+(?:not\s+able|unable)\s+to)"
)
_SAYS_NOTHING = re.compile(
    rf"^\W*(?:i['’]?m\s+|i\s+am\s+)?(?:(?:very|so)\s+)?(?:{_REGRET}[\W_]*)?(?:but\s+|that\s+)?"
    rf"(?:{_CANNOT}\s+(?:\w+\s+)?(?:know|help|assist|comply|answer|respond|provide)\b"
    r"|(?:i\s+have\s+)?no\s+idea\b|i['’]?m\s+not\s+(?:sure|certain)\b)"
    r"|^\W*(?:(?:i['’]?m\s+|i\s+am\s+)?(?:sorry|afraid)|null|nil|undefined)\W*$"
    # German, French, Spanish, Portuguese, Italian, Chinese, Japanese
    r"|^\W*(?:das\s+|ich\s+)?wei(?:ß|ss)\s+(?:ich\s+)?(?:es\s+|das\s+)?(?:leider\s+)?nicht\b|^\W*je\s+ne\s+(?:le\s+)?sais\s+pas\b"
    r"|^\W*(?:yo\s+)?no\s+(?:lo\s+)?sé\b|^\W*(?:eu\s+)?não\s+sei\b|^\W*non\s+(?:lo\s+)?so\b|^\W*我?不知道|^\W*(?:分|わ)かりません",
    re.I,
)
_NAMES_SOURCES = re.compile(rf"\b{_SOURCES}\b", re.I)
_LONGEST_NOTHING = 250  # characters; a longer text says something


def is_refusal(text: str) -> bool:
    """Whether a model refused with the fixed sentence of the prompt."""
    return bool(_EXACT.match(text))


def is_weak_refusal(text: str, *, marked: bool = False) -> bool:
    """Whether a model says in its own words that it found no answer.

    "The authors could not find a difference" is no refusal: it is about the authors, not about the evidence.
    marked: whether the sentence has a citation marker; statements about missing evidence mostly have none.
    """
    text = text[:_LONGEST]
    return bool(_WEAK.search(text)) or (not marked and bool(_WEAK_UNMARKED.search(text)))


def says_nothing(text: str) -> bool:
    """Whether a model only says that it does not know or will not help, and nothing about the evidence.

    That is no finding about the papers, and no refusal for want of evidence.
    """
    return len(text) <= _LONGEST_NOTHING and bool(_SAYS_NOTHING.search(text)) and not _NAMES_SOURCES.search(text)
