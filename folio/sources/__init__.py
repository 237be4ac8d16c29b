"""Sources of papers and of what is known about them besides PDFs: bibliographies.

Whatever they read is hostile: it is bounded, checked, and never executed.
"""
