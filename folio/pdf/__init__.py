"""A file becomes pages."""
