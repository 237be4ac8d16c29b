"""What a question names: labels and names of algorithms, and bare identifiers."""

from __future__ import annotations

import pytest

from folio.question.named import NamedThing

KEYGEN = "Algorithm 19 ML-KEM.KeyGen()"


@pytest.mark.parametrize(
    ("question", "title", "likeness"),
    [
        ("What are the steps of Algorithm 19 (ML-KEM.KeyGen)?", KEYGEN, 1.0),
        ("Algorithm 19", KEYGEN, 0.9),
        ("ML-KEM.KeyGen", KEYGEN, 0.8),
        ("How does ml-kem.keygen work?", KEYGEN, 0.8),
        ("How does ML-KEM.KeyGen_internal work?", KEYGEN, 0.0),
        ("How does ML-KEM.Encaps work?", KEYGEN, 0.0),
        ("Algorithm 1", KEYGEN, 0.0),
        ("Why is ML-KEM.KeyGen slow?", KEYGEN, 0.0),
        ("How many keys does ML-KEM.KeyGen make?", KEYGEN, 0.0),
        ("How does ByteEncode work?", "Algorithm 5 ByteEncode_d(F)", 0.8),
        ("How does NTT-1 work?", "Algorithm 10 NTT⁻¹(f)", 0.8),
        ("How does NTT work?", "Algorithm 10 NTT⁻¹(f)", 0.0),
        ("Show base_2b", "Algorithm 4 base_2b(X, b, out_len)", 0.8),
        ("Listing 3", "Listing 3. Pseudo code for wait-free enqueue.", 0.9),
        ("Figure 3", "Listing 3. Pseudo code for wait-free enqueue.", 0.0),
        ("How does the tree traversal algorithm work?", "Algorithm 1 Tree Traversal Algorithm", 0.8),
        ("How does the traversal work?", "Algorithm 1 Tree Traversal Algorithm", 0.0),
        ("What are the steps of Algorithm 5 (chain)?", "Algorithm 5 chain(X, i, s, PK.seed, ADRS)", 1.0),
        ("What are the steps of Algorithm 5 (chain)?", "Algorithm 5 ByteEncode(F)", 0.9),
        ("How does chain work?", "Algorithm 5 chain(X, i, s, PK.seed, ADRS)", 0.8),
        ("Describe alloc", "Function alloc(Superblock, Sreq)", 0.8),
        ("How does BERT alloc its memory?", "Function alloc(Superblock, Sreq)", 0.0),
    ],
)
def test_likeness_to_an_algorithms_title(question: str, title: str, likeness: float) -> None:
    assert NamedThing.of(question).likeness(title) == likeness


@pytest.mark.parametrize(
    ("question", "is_bare"),
    [
        *((bare, True) for bare in ("ML-KEM.KeyGen", "SP 800-207", "SHAKE128", "ForExample", "h-detach", "FIPS 203-A")),
        *((other, False) for other in (
            "How does ML-KEM.KeyGen work?", "What is SHAKE128?", "SHAKE128 output length", "otters", "Algorithm 19",
            "the SHAKE128 function", "203", "Is it so?",
        )),
    ],
)  # fmt: skip
def test_bare_identifiers(question: str, is_bare: bool) -> None:
    assert NamedThing.of(question).is_bare == is_bare
