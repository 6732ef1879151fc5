"""Libraries that were written for PyTorch, judged by their own tests on both sides."""
