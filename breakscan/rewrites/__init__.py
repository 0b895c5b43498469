"""One file a rewrite; rules name them in ``[rewrite] ids``."""
