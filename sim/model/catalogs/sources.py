"""What jobs read from: the connectors that a source vertex may name (`connector:`), each with its component of the known defects."""

SOURCES = {
    "kafka-source": "flink-connector-kafka",
    "pulsar-source": "pulsar",
    "jdbc-source": "flink-connector-jdbc",
    "flink-cdc": "flink-cdc",
    "iceberg-source": "iceberg",
    "paimon-source": "paimon",
    "hudi-source": "hudi",
    "delta-source": "delta",
}
