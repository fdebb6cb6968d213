"""One simulated job: hosts run the protocol machines on the data plane, the storage and one clock."""
