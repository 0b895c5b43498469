"""Files that a program writes: which code of other files theirs is made from, and which edits of that code fix them."""
