"""The hooks of the recorder into torch: one file a kind of datum."""
