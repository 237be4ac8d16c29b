"""Reviews: what each paper contributes in its own words, by theme; agreements, differences, open questions."""
