"""Hold one module of predictions and exercises for each notebook."""
