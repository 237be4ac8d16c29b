"""Every JSON form, once."""
