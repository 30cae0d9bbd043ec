"""Selection: choose the best of many candidates by noisy scores, and release the choice alone."""
