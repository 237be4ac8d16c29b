"""What a model of 8B writes when no schema holds it, about the papers of `small_papers`: written by hand, not recorded.

JSON in a fence, behind a sentence or with more words behind it, lists as lines, a yes with a full stop.
"""

from __future__ import annotations

import json
import re

from tests.helpers.ollama_models import REFUSAL, Json, answer_from_evidence

LENGTH = "How long is the Aletsch glacier?"
STATEMENT = "The length of the Aletsch glacier is 23 kilometres."
PASSAGE = "The Great Aletsch Glacier of the Bernese Alps has a length of about 23 kilometres and is the largest there."


def fenced(value: object) -> str:
    return f"```json\n{json.dumps(value, indent=2)}\n```"


def loose_reply(messages: list[Json]) -> str:
    """The reply to any prompt of Folio."""
    rules, prompt = str(messages[0]["content"]), str(messages[-1]["content"])
    if "one word, yes or no" in prompt:
        return "Yes." if "23 kilometres" in prompt.rpartition("<evidence")[2] else "No."
    if '"relevance"' in prompt:
        is_hit = "Aletsch glacier has" in prompt
        return fenced({"summary": "It is 23 kilometres long." if is_hit else "", "relevance": 9 if is_hit else 1})
    if '"parts"' in prompt:
        return 'One passage can answer it, so there are no parts.\n\n{"parts": []}'
    if '"queries"' in prompt:
        return "Here are other searches:\n\n1. **glacier length kilometres**\n2. extent of the Aletsch glacier\n"
    if '"passage"' in prompt:
        return f"Here is the passage:\n\n{fenced({'passage': PASSAGE})}"
    if '"claims"' in prompt:
        return f"{fenced({'claims': []})}\n\nThe papers speak of different things."
    if "grade answers" in rules:
        return f"The answer gives the length.\n\n{fenced({'reason': 'It gives the length.', 'grade': 3})}"
    if "exam questions" in rules:
        text = " ".join(prompt.partition("</evidence>")[0].partition(">")[2].split())
        quote = next((said for said in re.split(r"(?<=\.)\s", text) if len(said.split()) > 7), "")
        *begins, _ = quote.split()
        question = {"question": f"What is known of {' '.join(begins[:4])}?", "answer": quote, "quotes": [quote]}
        return f"Here is one:\n\n{fenced(question)}"
    if '"statements"' in prompt:
        found = re.search(r"\[(\d+)\] [^\n]*Aletsch glacier has a length", prompt)
        statements = [{"support": [int(found[1])], "statement": STATEMENT}] if found else []
        return f"Here is the answer in JSON:\n\n{fenced({'statements': statements, 'answered': bool(found)})}"
    if "Quote: " in prompt:
        found = re.search(r"The Aletsch\s+glacier\s+has\s+a\s+length[^.]*\.", prompt)
        quote = " ".join(found[0].split()) if found else ""
        return f"**Quote:** “{quote}”\n\n**Answer:** {STATEMENT}\n" if found else f"Answer: {REFUSAL}"
    return answer_from_evidence(messages)
