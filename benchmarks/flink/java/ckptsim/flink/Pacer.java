package ckptsim.flink;

import java.util.concurrent.locks.LockSupport;

/**
 * Makes a task thread spend a stated time per record without spending processor time.
 *
 * <p>It sleeps once the services of the records add up to a whole grain, so that those far below the resolution of a sleep come out
 * right on the mean. What a late wake-up took too long is served faster afterwards, up to {@link #SLACK_NANOS}; waiting for input or for
 * buffers is no credit.
 */
final class Pacer {
    private static final long GRAIN_NANOS = 1_000_000;
    private static final long SLACK_NANOS = 100_000_000;

    private long owed;

    void serve(long nanos) throws InterruptedException {
        owed += nanos;
        if (nanos == 0 || owed < GRAIN_NANOS) {
            return;
        }
        long begun = System.nanoTime();
        long slept = 0;
        while (slept < owed) {
            LockSupport.parkNanos(owed - slept);
            if (Thread.interrupted()) {
                throw new InterruptedException("cancelled while serving a record");
            }
            slept = System.nanoTime() - begun;
        }
        owed = Math.max(owed - slept, -SLACK_NANOS);
    }
}
