"""Random programs run by functrans and by PyTorch; see ``__main__``."""
