"""How far predictions can be trusted: validation, backtests, the envelope, known issues of Flink and its connectors."""
