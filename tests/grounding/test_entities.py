"""Facts: which numbers, units, names and denials of a sentence stand in its evidence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.grounding.conflicts import conflict
from folio.grounding.entities import entities, missing
from folio.grounding.negation import contradicts
from folio.grounding.quantities import Quantity, key
from tests.helpers.cpu_time import assert_linear


def quantities(text: str) -> set[tuple[str, str]]:
    return {(quantity.value, quantity.unit) for quantity in entities(text).quantities}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # One number, however it is written
        ("155,000 and 155000 and 155 000 and 155\u2009000", {("155000", "")}),
        ("0.50 or .5 or 0.5 or 0,5", {("0.5", "")}),
        ("1e-3 or 1×10^-3 or 1 × 10⁻³ or 10⁻³ or 0.001", {("0.001", "")}),
        ("2^10 = 1024", {("1024", "")}),
        ("2.5 and 25", {("2.5", ""), ("25", "")}),
        ("1,234 and 0,123", {("1234", ""), ("0.123", "")}),
        ("Figures 1,2,3", {("1", "fi"), ("2", "fi"), ("3", "fi")}),
        ("−5 and –6 and -7", {("-5", ""), ("-6", ""), ("-7", "")}),
        ("twenty-three, Seventeen, ninety", {("23", ""), ("17", ""), ("90", "")}),
        ("two hundred and fifty, a hundred", {("250", ""), ("100", "")}),
        ("two hundred thousand", {("200000", "")}),
        ("23 million, 1.5 billion", {("23000000", ""), ("1500000000", "")}),
        ("10k images, 110M parameters, 8B", {("10000", ""), ("110000000", ""), ("8000000000", "")}),
        ("the first of one, the second", set()),
        ("٢٣ of them", {("23", "")}),
        ("in the 1980s, on the 4th", {("1980", ""), ("4", "")}),
        ("a 12-layer net, top-5, mid-2019", {("12", ""), ("5", ""), ("2019", "")}),
        ("9" * 40, {("9" * 40, "")}),
        # Ranges share their unit
        ("10-20 km", {("10", "km"), ("20", "km")}),
        ("10–20 km", {("10", "km"), ("20", "km")}),
        ("10 to 20 km", {("10", "km"), ("20", "km")}),
        ("between 10 and 20 km", {("10", "km"), ("20", "km")}),
        ("10 ± 2 ms", {("10", "ms"), ("2", "ms")}),
        ("in 2019 and 20 km", {("2019", ""), ("20", "km")}),
        # Units
        ("5 %, 5 percent, 5 per cent, 5%", {("5", "%")}),
        ("5 percentage points, 5 %-points", {("5", "pp")}),
        ("5 km, 5-km, 5km, 5 kilometres, 5-kilometer", {("5", "km")}),
        ("5 mW and 5 MW", {("5", "mW"), ("5", "MW")}),
        ("5 Mb, 5 MB, 5 MiB", {("5", "Mbit"), ("5", "MB"), ("5", "MiB")}),
        ("5 KB, 5 kB, 5 kilobytes", {("5", "kB")}),
        ("5 µs, 5 us, 5 μs, 5 microseconds", {("5", "µs")}),
        ("5 min, 5 h, 5 hours, 5 days, 5 yrs", {("5", "min"), ("5", "h"), ("5", "d"), ("5", "yr")}),
        ("$5, 5 USD, 5 dollars", {("5", "$")}),
        ("€ 5 million", {("5000000", "€")}),
        ("5 x faster, 5×, fivefold, 5-fold, five times", {("5", "fold")}),
        ("25 °C, 25 degrees Celsius, 25°C", {("25", "°C")}),
        ("60 km/h, 60 km per hour, 60 kilometres per hour", {("60", "km/h")}),
        ("5 m², 5 m2, 5 square metres, 5 m^2", {("5", "m^2")}),
        ("3D, three-dimensional, 3 dimensions", {("3", "D")}),
        ("300 K and 2 GHz and 3 dB", {("300", "K"), ("2", "GHz"), ("3", "dB")}),
        ("In 2019 A new one", {("2019", "")}),
        # What they refer to
        ("Table 3, Fig. 2, Section 4.1, Eq. (2)", {("3", "ta"), ("2", "fi"), ("4.1", "se"), ("2", "eq")}),
        ("Tables 2 and 3", {("2", "ta"), ("3", "ta")}),
        ("as shown [12, 14]", {("12", "["), ("14", "[")}),
        ("step 2", {("2", "")}),
    ],
)
def test_quantities(text: str, expected: set[tuple[str, str]]) -> None:
    assert quantities(text) == expected


@pytest.mark.parametrize(
    ("text", "identifiers", "names"),
    [
        ("It is ML-KEM-768 with SHA3-256.", {"ML-KEM-768", "SHA3-256"}, set()),
        ("See CVE-2021-44228, x_1, v1.2, numpy.linalg.", {"CVE-2021-44228", "x_1", "v1.2", "numpy.linalg"}, set()),
        ("A ResNet50-based OcamlP3l, i.e. GPT-4.", {"ResNet50", "OcamlP3l", "GPT-4"}, set()),
        ("At https://a.org/b-1.", {"https://a.org/b-1"}, set()),
        ("At https://a.org/ten-years.", {"https://a.org/ten-years"}, set()),
        ("doi: 10.21105/jose.00013, then", {"doi: 10.21105/jose.00013"}, set()),
        ("In May they used Adam on GPUs.", set(), {"May", "Adam", "GPU"}),
        ("Adam is used. Then Bob wrote: The end.", set(), {"Bob"}),
        ("SGD is Folio's choice.", set(), {"SGD", "Folio"}),
        ("Der Hund frisst das Futter mit der Katze.", set(), set()),
        ("A Large Study Of Many Things", set(), set()),
        ("It takes 20 GB at 5 °C.", set(), set()),
        ("As Table 3 says, however, the Diffie-Hellman exchange", set(), {"Diffie", "Hellman"}),
    ],
)
def test_identifiers_and_names(text: str, identifiers: set[str], names: set[str]) -> None:
    assert (set(entities(text).identifiers), set(entities(text).names)) == (identifiers, names)


def test_quoted_words_are_three_or_more() -> None:
    assert entities('He said “never trust it” and “go on”, «mais je crois», "as it … was in May".').quoted == (
        "never trust it",
        "mais je crois",
        "was in May",
    )


def test_a_key_is_words_and_numbers() -> None:
    assert key("the ML-KEM.KeyGen of Gauß, v1.2 (é)") == " the ml kem keygen of gauss v 1.2 e "


PASSAGE = (
    "We trained ResNet-50 and a Long Short-Term Memory on 155,000 images with Adam (learning rate 1×10⁻³) for 90 epochs"
    " in 23.5 hours on eight V100 GPUs. Accuracy rose from 76.1 % to 78.4%, i.e. by 2.3 percentage points, while memory"
    " fell to 12 GB. Table 3 compares ML-KEM-512, -768 and -1024. The trail is 5-kilometre long. Smith et al. [12] call"
    " this “the cost of being right” in Germany. The temperature was -5 °C. Pressure stayed between 10 and 20 kPa."
    " The throughput of 60 km/h cost $5 million. Length (km): Aare 288, Reuss 164. The F1 score is 0.91."
)


@pytest.mark.parametrize(
    "sentence",
    [
        "The network was trained on 155000 images.",
        "155 000 images were used.",
        "The learning rate was 0.001.",
        "The learning rate was 1e-3.",
        "The learning rate was 10^-3.",
        "Training lasted ninety epochs.",
        "Training took 23.5 h.",
        "It ran for 23.50 hours.",
        "They used 8 GPUs.",
        "They used eight V100s.",
        "A V100 GPU was used.",
        "The accuracy was 78.4 percent.",
        "Accuracy improved from 76.1% to 78.4 %.",
        "The gain is 2.3 percentage points.",
        "Accuracy was 0.784.",
        "The memory is 12 gigabytes.",
        "Memory decreased to 12 GB.",
        "According to Table 3, three of them differ.",
        "The table compares ML-KEM-768.",
        "The table compares ML-KEM 1024 and ml-kem-512.",
        "They trained a ResNet50.",
        "They trained a ResNet 50.",
        "They trained an LSTM.",
        "The LSTMs were trained.",
        "It is about a Long-Short Term Memory.",
        "Smith calls it “the cost of being right”.",
        "It is what they call “The Cost of Being Right”.",
        "A German trail is meant.",
        "The trail is 5 km long.",
        "The trail has a length of five kilometers.",
        "The temperature was −5 °C.",
        "The temperature was minus 5 degrees Celsius.",
        "The temperature fell to 5 °C below zero.",
        "The pressure was 10–20 kPa.",
        "The pressure was 10 to 20 kPa.",
        "The pressure was at least 10 kPa.",
        "It was 60 kilometres per hour.",
        "It cost 5,000,000 dollars.",
        "It cost 5 million USD.",
        "The Aare is 288 km long.",
        "The river Reuss measures 164 kilometres.",
        "The F1-score was 0.91.",
        "It reaches an F1 of 0.91.",
        "The F1 score was 91 %.",
        "One of the models is better.",
        "The first result is better.",
        "Both are compared.",
        "ADAM was used in GERMANY.",
        "It was Smith's claim.",
        "The images of Smith et al. were used.",
        "Nothing is said.",
        "",
        "...",
    ],
)
def test_nothing_is_missing(sentence: str) -> None:
    assert missing(sentence, PASSAGE.replace("ML", "three of them: ML")) == []


@pytest.mark.parametrize(
    ("sentence", "lacking"),
    [
        ("They used 26 images.", ["the number 26"]),
        ("They used 155 images.", ["the number 155"]),
        ("They used 1,550,000 images.", ["the number 1550000"]),
        ("The rate was 10^-4.", ["the number 0.0001"]),
        ("The rate was 0.01.", ["the number 0.01"]),
        ("It took nine epochs.", ["the number 9"]),
        ("It took ninety-one epochs.", ["the number 91"]),
        ("It took 23 hours.", ["the number 23"]),
        ("It took 235 hours.", ["the number 235"]),
        ("It took 23.5 minutes.", ["the unit of 23.5 min"]),
        ("It took 23.5 days.", ["the unit of 23.5 d"]),
        ("The gain is 2.3 %.", ["the unit of 2.3 %"]),
        ("Accuracy was 78.4 percentage points.", ["the unit of 78.4 pp"]),
        ("The memory is 12 MB.", ["the unit of 12 MB"]),
        ("The memory is 12 GiB.", ["the unit of 12 GiB"]),
        ("The memory is 12 Gbit.", ["the unit of 12 Gbit"]),
        ("The trail is 5 miles long.", ["the unit of 5 mi"]),
        ("The trail is 5 m long.", ["the unit of 5 m"]),
        ("The temperature was 5 °C.", ["the unit of 5 °C"]),
        ("The temperature was -5 °F.", ["the unit of -5 °F"]),
        ("The temperature was -50 °C.", ["the number -50"]),
        ("The pressure was 10 to 25 kPa.", ["the number 25"]),
        ("The pressure was 10–20 MPa.", ["the unit of 10 MPa", "the unit of 20 MPa"]),
        ("The pressure was 20 Pa.", ["the unit of 20 Pa"]),
        ("It was 60 km.", ["the unit of 60 km"]),
        ("It was 60 m/s.", ["the unit of 60 m/s"]),
        ("It cost €5 million.", ["the unit of 5000000 €"]),
        ("It cost 5 billion dollars.", ["the number 5000000000"]),
        ("The Aare is 288 m long.", ["the unit of 288 m"]),
        ("The Aare is 289 km long.", ["the number 289"]),
        ("Table 4 compares them.", ["the number 4"]),
        ("As Figure 3 shows.", ["the number 3"]),
        ("They had 12 authors of 3 kinds.", ["the number 3"]),
        ("It compares ML-KEM-1023.", ["the name ML-KEM-1023"]),
        ("It compares ML-DSA-768.", ["the name ML-DSA-768"]),
        ("It compares ML-DSA.", ["the name DSA"]),
        ("They trained ResNet-101.", ["the name ResNet-101"]),
        ("They trained ResNet.v5.", ["the name ResNet.v5"]),
        ("They trained a ResNet152.", ["the name ResNet152"]),
        ("They used the A100.", ["the name A100"]),
        ("They used numpy.linalg.", ["the name numpy.linalg"]),
        ("They set x_1 to it.", ["the name x_1"]),
        ("They used TensorFlow.", ["the name TensorFlow"]),
        ("They used RMSProp and Adam.", ["the name RMSProp"]),
        ("They used Adagrad.", ["the name Adagrad"]),
        ("They used an SVM.", ["the name SVM"]),
        ("TPUs were used.", ["the name TPU"]),
        ("It happened in Austria.", ["the name Austria"]),
        ("It happened in May.", ["the name May"]),
        ("Jones said so, as did Smith and Miller.", ["the name Miller"]),
        ("They call it “the price of being right”.", ["the words “the price of being right”"]),
        ('They call it "the cost of being wrong".', ["the words “the cost of being wrong”"]),
        ("The F2 score was 0.91.", ["the name F2"]),
        ("The F1 score was 0.92.", ["the number 0.92"]),
        ("The F1 score was 9.1.", ["the number 9.1"]),
        ("See https://example.org/x.", ["the name https://example.org/x"]),
        ("Adam took 91 epochs on TPUs.", ["the number 91", "the name TPU"]),
        ("It was CVE-2021-44228.", ["the name CVE-2021-44228"]),
        ("The GPU took 12 seconds.", ["the unit of 12 s"]),
        ("It was twelve times faster.", ["the unit of 12 fold"]),
        ("It grew threefold.", ["the number 3"]),
        ("It was v2.0.", ["the name v2.0"]),
    ],
)
def test_what_is_missing(sentence: str, lacking: list[str]) -> None:
    assert missing(sentence, PASSAGE) == lacking


@pytest.mark.parametrize(
    ("sentence", "passage", "known", "lacking"),
    [
        # Names may stand in the title, numbers may not
        ("The Folio paper has 5 parts.", "It has 5 parts.", "Folio: a local RAG", []),
        ("The Folio paper has 5 parts.", "It has parts.", "Folio 5", ["the number 5"]),
        ("In GPT-4 it holds.", "It holds.", "gpt4.pdf", []),
        ("It is in “Attention Is All You Need”.", "It is.", "Attention is all you need", []),
        # Letters and digits may be tied together in any way
        ("GPT4 is it.", "We use GPT-4.", "", []),
        ("The GPT 4 model.", "We use GPT-4.", "", []),
        ("The GPT 4 model.", "We use GPT-4.5 and Claude.", "", ["the number 4"]),
        ("GPT-4 is it.", "We use GPT-4.5.", "", ["the name GPT-4"]),
        ("It is x_2.", "It is x_1.", "", ["the name x_2"]),
        ("It is x₁.", "It is x_1.", "", []),
        ("It is SHA-256.", "It is SHA256.", "", []),
        ("By SP 800-207, yes.", "SP800-207 says yes.", "", []),
        ("COVID–19 spread.", "COVID-19 spread.", "", []),
        ("A COVID-19-related thing.", "COVID-19 it is.", "", []),
        ("They call it OpenAI.", "They call it Open AI.", "", []),
        ("They call it Open AI.", "They call it OpenAI.", "", []),
        # What type loses
        ("It is 10⁻³.", "It is 10-3.", "", []),
        ("It is 2^128.", "It is 2128.", "", []),
        ("It is 1,000,000.", "It is 106.", "", []),
        ("It is 5.2 × 10^3.", "It is 5.2 × 103.", "", []),
        ("It is 120.", "5 120 300", "", []),
        # Numbers in words
        ("The 3 steps.", "Three steps.", "", []),
        ("1 of them.", "one of them", "", []),
        ("It had two parts.", "Both parts", "", []),
        ("It has 50 layers.", "Table 50 shows layers.", "", ["the number 50"]),
        ("Table 3 says so.", "Tables 2 and 3 say so.", "", []),
        ("It was repeated three times.", "We made three repetitions.", "", []),
        ("It fell by 5 %.", "The change was −5 %.", "", []),
        ("It rose by 5 %.", "The change was −5 %.", "", ["the number 5"]),
        ("The temperature fell to -5 degrees.", "It fell to 12 °C in the night.", "", ["the number -5"]),
        # Fractions; what is about one is none
        ("A quarter of the users left.", "Half of the users left.", "", ["the number 0.25"]),
        ("Half of the users left.", "A quarter of the users left.", "", ["the number 0.5"]),
        ("Three quarters of them left.", "One quarter of them left.", "", ["the number 0.75"]),
        ("Half of the users left.", "Only half the users stayed.", "", []),
        ("One quarter of the users left.", "25 % of the users left.", "", []),
        ("50 % of the users left.", "A half of the users left.", "", []),
        ("Three quarters of them left.", "About three quarters of them left.", "", []),
        ("About half of them left, in the second half of May.", "In May 48 % left.", "", []),
        # Powers, and units of a rate in words
        ("The pen covers 12 km².", "The pen covers 12 km² of land.", "", []),
        ("The pen covers 12 m2.", "The pen covers 12 m² of land.", "", []),
        ("It covers 12 square kilometres.", "Pen    Area (km2)\nHere    12", "", []),
        ("It is 12 kilometres long.", "Pen    Area (km2)\nHere    12", "", ["the unit of 12 km"]),
        ("It covers 12 km3.", "Pen    Area (km2)\nHere    12", "", ["the unit of 12 km^3"]),
        ("It melts by 40 metres each year.", "It melts by 40 m per year.", "", []),
        ("It melts by 40 m per year.", "It melts by 40 metres every year.", "", []),
        ("It melts by 40 metres.", "It melts by 40 metres each year.", "", []),
        ("It melts by 40 metres each day.", "It melts by 40 m per year.", "", ["the unit of 40 m"]),
        # Acronyms
        ("By NLP, it works.", "By natural language processing.", "", []),
        ("By ML it works.", "By machine learning.", "", []),
        ("The Area Under the Curve is it.", "The AUC is it.", "", []),
        ("With CNNs it works.", "A convolutional neural network.", "", []),
        ("With RNNs it works.", "A convolutional neural network.", "", ["the name RNN"]),
        ("The Bayesian way.", "By Bayes it is.", "", []),
        ("It was in (Jones et al. 20013).", "It was in (Jones et al. 2001).", "", ["the number 20013"]),
        ("It has 20,000 parts.", "It has 20, 000 parts.", "", []),
        ("With IFN-gamma it works.", "With IFN-γ.", "", []),
        ("It is 76.3 %.", "It is 76·3%.", "", []),
        ("It took 100 hours.", "It took several hundred hours.", "", []),
        ("It took several hundred hours.", "It took long.", "", []),
        ("The Haskell-Argo site.", "The Euro-Argo site has it.", "", ["the name Haskell"]),
        ("It is by Müller.", "Muller made it.", "", []),
        ("5 μs it is.", "It is 5 µs.", "", []),
    ],
)
def test_cases(sentence: str, passage: str, known: str, lacking: list[str]) -> None:
    assert missing(sentence, passage, known) == lacking


SAME = [
    ("X improves Y.", "X improves Y."),
    ("X does not improve Y.", "X fails to improve Y."),
    ("X does not improve Y.", "Y is not improved by X."),
    ("Z improves Y.", "X does not improve Y, but Z does."),
    ("X improves speed.", "X does not improve accuracy but improves speed."),
    ("X improves both Y and Z.", "X improves not only Y but also Z."),
    ("X does not depend on Y.", "X is independent of Y."),
    ("No labels are needed.", "Labels are unnecessary."),
    ("The accuracy did not reach 50 %.", "The accuracy stayed below 50 %."),
    ("It lacks a proof.", "There is no proof of it."),
    ("X cannot be reproduced.", "We were unable to reproduce X."),
    ("X cannot be reproduced.", "Reproducing X failed."),
    ("It takes at most 5 steps.", "It takes no more than 5 steps."),
    ("It takes no more than 5 steps.", "It takes at most 5 steps."),
    ("It takes at least 5 steps.", "It takes no fewer than 5 steps."),
    ("The old way is gone.", "The old way is no longer used."),
    ("X does not always hold.", "X holds sometimes."),
    ("X works.", "X does not always work."),
    ("Adam is faster than SGD.", "SGD is slower than Adam."),
    ("The first is larger than the second.", "The second is smaller than the first."),
    ("It has higher accuracy.", "It achieves better accuracy at lower cost."),
    ("It lowers the error.", "The error is reduced."),
    ("It increases speed and lowers cost.", "Cost decreases and speed rises."),
    ("Accuracy rose.", "Accuracy improved."),
    ("The maximum is 5.", "It is 5 at most."),
    ("It is not higher than before.", "It is lower than before."),
    ("It runs without supervision.", "It runs unsupervised."),
    ("It uses Adam rather than SGD.", "It uses Adam instead of SGD."),
    ("It uses Adam.", "It uses Adam and not SGD."),
    ("Adam adapts its rate.", "Unlike SGD, which does not adapt its rate, Adam does."),
    ("The proof is given in No. 5.", "The proof is given there."),
    ("There is no doubt that it works.", "It works."),
    ("Whether or not it rains, it works.", "It always works."),
    ("The model is trained on images.", "The model is trained on images, not on text."),
    ("The scheme is secure.", "The scheme is secure, though not fast."),
    ("Patients recovered quickly.", "No patient died, and patients recovered quickly."),
    ("The key is encrypted before it is sent.", "The key is sent after encryption."),
    ("It is fast, but not secure.", "It is not secure but fast."),
    ("It moves from unstable to stable states.", "The switch is to more stable states."),
    ("The model, which does not learn, only guesses.", "The model only guesses and does not learn."),
    ("No, it compiled unchanged.", "The code compiled unchanged."),
    ("Many users accept the risk.", "The risk is accepted by many; few reject it."),
]

OPPOSITE = [
    ("X does not improve Y.", "X improves Y."),
    ("X improves Y.", "X does not improve Y."),
    ("X doesn't improve Y.", "X improves Y."),
    ("X improves Y.", "X doesn’t improve Y."),
    ("X can be used with Y.", "X cannot be used with Y."),
    ("X can't be used with Y.", "X can be used with Y."),
    ("X never converges.", "X converges."),
    ("X converges.", "X never converges."),
    ("There is evidence that X works.", "There is no evidence that X works."),
    ("An improvement was found.", "No improvement was found."),
    ("It was trained with labels.", "It was trained without labels."),
    ("It was trained without labels.", "It was trained with labels."),
    ("X fails to converge.", "X converges."),
    ("X converges.", "X failed to converge."),
    ("The method is no longer used.", "The method is used."),
    ("None of the models converged.", "The models converged."),
    ("The scheme lacks a proof.", "The scheme has a proof."),
    ("The scheme is not secure but fast.", "The scheme is secure and fast."),
    ("Accuracy increases with depth.", "Accuracy decreases with depth."),
    ("It decreases accuracy.", "It increases the accuracy."),
    ("The accuracy of X is higher.", "The accuracy of X is lower."),
    ("It has lower accuracy.", "It has higher accuracy."),
    ("Adam is faster than SGD.", "Adam is slower than SGD."),
    ("Adam is worse than SGD.", "Adam is better than SGD."),
    ("It needs fewer data.", "It needs more data."),
    ("It needs more than 5 steps.", "It needs less than 5 steps."),
    ("It takes at least 5 steps.", "It takes at most 5 steps."),
    ("It takes at least 5 steps.", "It takes no more than 5 steps."),
    ("The temperature was above 5 °C.", "The temperature was below 5 °C."),
    ("It happens before training.", "It happens after training."),
    ("It enables caching.", "It disables caching."),
    ("The result was positive.", "The result was negative."),
    ("The statement is true.", "The statement is false."),
    ("The server rejects the request.", "The server accepts the request."),
    ("The client decrypts the message.", "The client encrypts the message."),
    ("The policy allows access.", "The policy forbids access."),
    ("The policy permits access.", "The policy prevents access."),
    ("The list includes children.", "The list excludes children."),
    ("It is the first layer.", "It is the last layer."),
    ("It gives the maximum cost.", "It gives the minimum cost."),
    ("The upper bound is tight.", "The lower bound is tight."),
    ("The scheme is secure.", "The scheme is insecure."),
    ("The training was unstable.", "The training was stable."),
    ("The effect was significant.", "The effect was insignificant."),
    ("The tool is not limited to experts only.", "The tool is limited to experts only."),
    ("It is a UCP1-dependent mechanism.", "It is a UCP1-independent mechanism."),
    ("It lowers the rate of deaths.", "It increases the number of deaths."),
    ("Prices fell in May.", "Prices rose in May."),
    ("It degrades performance.", "It improves performance."),
]


BATCHES, OTTERS, SECURE = "Larger batches hurt generalization.", "Otters can fly.", "The scheme is secure."
# A claim that the quote has in a frame only.
LIFTED = [
    (OTTERS, "It is not true that otters can fly."),
    (OTTERS, "Nobody believes that otters can fly."),
    (OTTERS, "We never claimed that otters can fly."),
    (BATCHES, "We found no evidence that larger batches hurt generalization."),
    (BATCHES, "It is unclear whether larger batches hurt generalization."),
    (BATCHES, "Some doubt that larger batches hurt generalization."),
    (BATCHES, "It was hypothesized that larger batches hurt generalization."),
    ("The drug cures the disease.", "It was once falsely claimed that the drug cures the disease."),
    ("Dropout reduces overfitting in small networks.", "Dropout may reduce overfitting in small networks."),
    (SECURE, "If the key is kept secret, the scheme is secure."),
    ("The key is kept secret.", "If the key is kept secret, the scheme is secure."),
    (SECURE, "The scheme is secure only against passive attackers."),
]
FRAMED = [
    *((quote, quote) for _, quote in LIFTED),
    ("It is doubted that otters can fly.", "It is not true that otters can fly."),
    ("Otters cannot fly.", "It is not true that otters can fly."),
    (
        BATCHES,
        "It was unclear whether larger batches hurt generalization. We find that larger batches hurt it, and"
        " generalization suffers.",
    ),
    (BATCHES, "It is unclear why, but larger batches hurt generalization."),
    (BATCHES, "There is no doubt that larger batches hurt generalization."),
    ("The model improves accuracy.", "Whether it is fast is unclear, but the model improves accuracy."),
    (
        "The study examined the hurt that larger batches do to generalization.",
        "The study examined whether larger batches hurt generalization.",
    ),
    ("Dropout might reduce overfitting.", "Dropout may reduce overfitting in small networks."),
    ("Dropout possibly reduces overfitting.", "Dropout may reduce overfitting in small networks."),
    ("The tool can be deployed locally.", "The tool may also be deployed locally."),
    ("The results were reproduced.", "The results could be reproduced."),
    ("The layers are trained.", "The layers are trained and may be large."),
    ("With a secret key the scheme is secure.", "If the key is kept secret, the scheme is secure."),
    ("The scheme is secure when the key is.", "If the key is kept secret, the scheme is secure."),
    (SECURE, "Even if the key is known, the scheme is secure."),
    ("The number was not given.", "It was not clear if only the key was meant, and the number was not given."),
    ("The scheme is secure against passive attackers.", "The scheme is secure only against passive attackers."),
    ("The throughput is half that of A1.", "The throughput is only half that of A1."),
    ("The model learns nothing.", "Nothing is learned by the model."),
]


@pytest.mark.parametrize(("sentence", "quote"), LIFTED)
def test_a_claim_lifted_out_of_its_frame_contradicts(sentence: str, quote: str) -> None:
    assert contradicts(sentence, quote) is True


@pytest.mark.parametrize(("sentence", "quote"), FRAMED)
def test_a_claim_with_its_frame_does_not_contradict(sentence: str, quote: str) -> None:
    assert contradicts(sentence, quote) is False


@pytest.mark.parametrize(("sentence", "quote"), SAME)
def test_a_paraphrase_does_not_contradict(sentence: str, quote: str) -> None:
    assert contradicts(sentence, quote) is False


@pytest.mark.parametrize(("sentence", "quote"), OPPOSITE)
def test_an_opposite_contradicts(sentence: str, quote: str) -> None:
    assert contradicts(sentence, quote) is True


@pytest.mark.parametrize(
    ("sentence", "other", "expected"),
    [
        ("The accuracy of LeNet on images is 78 %.", "On images the accuracy of LeNet is 81 %.", True),
        ("The net LeNet was trained for 90 epochs on images.", "LeNet was trained for 80 epochs on images.", True),
        ("The Aletsch glacier has a length of 23 km.", "The Aletsch glacier has a length of 22 km.", True),
        ("In 2019 the rate of deaths in Bern was 5 %.", "In 2019 the rate of deaths in Bern was 6 %.", True),
        ("The treatment reduces mortality in adults.", "The treatment does not reduce mortality in adults.", True),
        ("The treatment reduces mortality in old adults.", "The treatment increases mortality in old adults.", True),
        ("The Folio project began in Bern in 1998.", "The Folio project began in Bern in 1999.", True),
        # Nothing says that it is the same thing
        ("The model was trained for 90 epochs on images.", "The model was trained for 80 epochs on the images.", False),
        ("The training set has 500 images.", "The test set has 300 images.", False),
        ("The training set of MNIST has 500 images.", "The test set of MNIST has 300 images.", False),
        ("The encoder uses 6 layers and dropout.", "The decoder uses 4 layers and dropout.", False),
        ("We used a learning rate of 0.1.", "We used a learning rate of 0.01.", False),
        ("In total 24 students attended the course.", "In total 31 students attended the course.", False),
        ("The old drug reduces pain in adults.", "The old drug may reduce pain in adults.", False),
        # Other conditions, other things, other words
        ("In 2019 the rate of deaths in Bern was 5 %.", "In 2020 the rate of deaths in Bern was 6 %.", False),
        ("In 2019 the rate of deaths in Bern was 5 %.", "In 2020 the rate of deaths in Bern was 5 %.", False),
        ("The accuracy of LeNet on images is 78 %.", "The accuracy of LeNet on images is 78 %.", False),
        ("The accuracy of LeNet on images is 78.4 %.", "The accuracy of LeNet on images is 78 %.", False),
        ("The accuracy of LeNet on images is 78 %.", "The accuracy of LeNet on images is 78 km.", False),
        ("The accuracy of Adam on images is 78 %.", "The accuracy of Bob on images is 81 %.", False),
        ("The accuracy of LeNet on images is 78 %.", "The cost of a car in winter is 81 %.", False),
        ("The accuracy of LeNet is in Table 3.", "The accuracy of LeNet is in Table 4.", False),
        ("The accuracy of LeNet was shown by [12].", "The accuracy of LeNet was shown by [13].", False),
        ("The accuracy of LeNet on images is 78 % of 5.", "The accuracy of LeNet on images is 78 %.", False),
        ("It is 5.", "It is 6.", False),
        ("The LeNet has 5 layers and 6 heads in all.", "The LeNet has 7 layers and 8 heads in all.", False),
    ],
)
def test_conflicts(sentence: str, other: str, expected: bool) -> None:
    assert (conflict(sentence, other), conflict(other, sentence)) == (expected, expected)


# What breaks readers of text: signs, digits of other scripts, half surrogates, spaces that are none.
_TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.sampled_from(
            '5 -3 2.5 1,000 10 000 km % °C $ ( ) [ ] “ ” " « » . , ; : - – − × ^ ⁻³ e-5 GPT-4 x_1 Adam LSTM not no'
            " never than more less higher lower two hundred million Table Fig. to and 10 ٢ ½ ß İ \ud800 \x00".split(" ")
        ),
        max_size=14,
    ).map(" ".join),
)


@given(_TEXTS, _TEXTS, _TEXTS)
def test_what_is_there_is_not_missing(sentence: str, before: str, after: str) -> None:
    assert missing(sentence, sentence) == []
    assert missing(sentence, f"{before}\n{sentence}\n{after}") == []


@given(_TEXTS)
def test_nothing_contradicts_itself(sentence: str) -> None:
    assert contradicts(sentence, sentence) is False
    assert conflict(sentence, sentence) is False


@given(_TEXTS, _TEXTS)
def test_conflict_goes_both_ways(sentence: str, other: str) -> None:
    assert conflict(sentence, other) == conflict(other, sentence)


@given(_TEXTS)
def test_quantities_are_among_their_readings(sentence: str) -> None:
    assert entities(sentence).quantities <= entities(sentence).readings


@pytest.mark.parametrize(("piece", "count"), [("acgt", 5000), ("的", 20_000), ("[1]", 6666), ("[1, 2] ", 3000)])
def test_what_has_no_spaces_takes_no_time(piece: str, count: int) -> None:
    def read(times: int) -> None:
        text = piece * times
        entities(text)
        assert contradicts(text, text + ".") is False

    assert_linear(read, count)


def test_facts_have_one_form() -> None:
    assert entities("1,000.0 km").quantities == {Quantity("1000", "km")}


@pytest.mark.parametrize(
    "piece", ["9", "1 000 ", "1,", "5-", "A.b_", "2^", "- ", "two hundred ", "not ", "a higher ", "“a ", "A "]
)
def test_long_texts_take_no_time(piece: str) -> None:
    def read(times: int) -> None:
        text = piece * times
        assert missing(text, text + " end") == []
        assert contradicts(text, text) is False

    assert_linear(read, 40_000 // len(piece))
