"""Plans: from a question and public facts alone, what will be read, bounded, noised and charged."""
