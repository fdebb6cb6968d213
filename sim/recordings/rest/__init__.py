"""What Flink's REST API tells of a job: asked of a live one, saved, or kept by a history server."""
