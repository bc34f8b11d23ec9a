"""Jobs that stage work for a commit, one file each."""
