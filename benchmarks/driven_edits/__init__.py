"""Applies the edits of ``breakscan fix`` to packages, and drives both sides with usual and unusual inputs."""
