"""The life of a job: protocols, driver, progress, errors that travel."""
