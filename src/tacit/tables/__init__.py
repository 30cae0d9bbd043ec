"""Tables: what is protected, what is public about it, and where its rows come from."""
