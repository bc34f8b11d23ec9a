"""Object stores through obstore: S3, Google Cloud Storage and Azure without a Python HTTP stack in between."""
