"""What a paper is: its fields, people, identifiers, the works behind it, its label, its names and sections."""
