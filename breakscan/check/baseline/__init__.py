"""What a project allows of what ``check`` finds: in a file that is committed, or in another commit."""
