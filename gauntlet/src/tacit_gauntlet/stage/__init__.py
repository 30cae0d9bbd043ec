"""What attacks stand on, and the kit a new engine or store must pass: tables, ledgers, clients, laws and references."""
