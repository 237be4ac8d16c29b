"""Folio's answers as tools for other assistants: a server of the Model Context Protocol."""
