"""Accuracy of predictions: validation, backtests, the envelope, known issues of Flink and its connectors."""
