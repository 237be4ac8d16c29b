"""Files become a store: reading, cleaning, splitting, embedding; rebuilding."""
