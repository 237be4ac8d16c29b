"""The HTTP API, and the page in static/."""
