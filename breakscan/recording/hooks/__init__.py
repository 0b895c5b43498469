"""What the recorder sees through: one file a kind of datum."""
