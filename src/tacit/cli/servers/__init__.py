"""Commands about servers: to run one, to ask one, and to let an agent ask it."""
