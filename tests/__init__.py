"""The tests, one folder a package of folio/, and what they share in helpers/."""
