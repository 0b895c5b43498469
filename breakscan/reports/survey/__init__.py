"""Reports of surveys."""
