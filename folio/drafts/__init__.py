"""A text of one's own -> its sentences, each checked against the papers that it cites."""
