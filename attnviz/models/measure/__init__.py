"""What runs on this machine beside a model: times, sizes, PyTorch's own attention."""
