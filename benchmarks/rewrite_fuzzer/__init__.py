"""Random programs around the rewrites: what ``breakscan fix`` makes of each must do the same in eager mode."""
