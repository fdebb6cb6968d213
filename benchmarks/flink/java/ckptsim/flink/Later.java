package ckptsim.flink;

import org.apache.flink.api.connector.source.lib.NumberSequenceSource.NumberSequenceSplit;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiter;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;

/** A limit of records that is replaced by another one some time after a reader has started. */
final class Later implements RateLimiterStrategy<NumberSequenceSplit> {
    private static final long serialVersionUID = 1L;

    private final RateLimiterStrategy<NumberSequenceSplit> first;
    private final RateLimiterStrategy<NumberSequenceSplit> then;
    private final long afterMs;

    Later(RateLimiterStrategy<NumberSequenceSplit> first, RateLimiterStrategy<NumberSequenceSplit> then, long afterMs) {
        this.first = first;
        this.then = then;
        this.afterMs = afterMs;
    }

    @Override
    public RateLimiter<NumberSequenceSplit> createRateLimiter(int parallelism) {
        RateLimiter<NumberSequenceSplit> early = first.createRateLimiter(parallelism);
        RateLimiter<NumberSequenceSplit> late = then.createRateLimiter(parallelism);
        long atMs = System.currentTimeMillis() + afterMs;
        return count -> (System.currentTimeMillis() < atMs ? early : late).acquire(count);
    }
}
