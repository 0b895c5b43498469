"""One file for each rewrite; rules name rewrites in ``[rewrite] ids``."""
