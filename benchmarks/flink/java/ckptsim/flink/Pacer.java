package ckptsim.flink;

import java.util.concurrent.locks.LockSupport;

/**
 * Makes a task thread spend a stated time per record without spending processor time.
 *
 * <p>A clock of its own runs ahead by the service time of each record; the thread sleeps once it is a whole grain ahead of the real
 * one, so that services far below the resolution of a sleep add up right. What a late wake-up took too long is served faster
 * afterwards, up to {@link #SLACK_NANOS}: waiting for input or for buffers is no credit.
 */
final class Pacer {
    private static final long GRAIN_NANOS = 1_000_000;
    private static final long SLACK_NANOS = 5_000_000;

    private long due = Long.MIN_VALUE;

    void serve(long nanos) throws InterruptedException {
        if (nanos == 0) {
            return;
        }
        long now = System.nanoTime();
        due = (due == Long.MIN_VALUE ? now : Math.max(due, now - SLACK_NANOS)) + nanos;
        while (due - now > GRAIN_NANOS) {
            LockSupport.parkNanos(due - now);
            if (Thread.interrupted()) {
                throw new InterruptedException("cancelled while serving a record");
            }
            now = System.nanoTime();
        }
    }
}
