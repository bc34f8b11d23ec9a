"""Write new files that no reader sees yet, and retry the commit that publishes them."""
