"""What attacks stand on, and the kit a new engine or store must pass: tables, ledgers, clients, laws and references."""

import gc
import os

# A forked child never collects what its parent left: it would end connections whose threads it does not have, and die.
os.register_at_fork(after_in_child=gc.freeze)
