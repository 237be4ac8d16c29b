"""Words become what is asked."""
