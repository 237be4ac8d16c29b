"""Several computers: PostgreSQL's engine, published indexes, the job queue, Ray."""
