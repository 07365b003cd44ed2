"""Ask, check and remember: predictions, exercises and progress."""
