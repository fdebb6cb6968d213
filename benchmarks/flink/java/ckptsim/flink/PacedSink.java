package ckptsim.flink;

import java.io.IOException;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;

/** Takes a stated time per record, and one per flush: Flink flushes a writer before the barrier of each checkpoint. */
final class PacedSink implements Sink<Event> {
    private final long serviceNanos;
    private final long flushMillis;

    PacedSink(long serviceMicros, long flushMillis) {
        this.serviceNanos = serviceMicros * 1000;
        this.flushMillis = flushMillis;
    }

    @Override
    public SinkWriter<Event> createWriter(WriterInitContext context) {
        return new Writer(serviceNanos, flushMillis);
    }

    private static final class Writer implements SinkWriter<Event> {
        private final Pacer pacer = new Pacer();
        private final long serviceNanos;
        private final long flushMillis;

        Writer(long serviceNanos, long flushMillis) {
            this.serviceNanos = serviceNanos;
            this.flushMillis = flushMillis;
        }

        @Override
        public void write(Event event, Context context) throws InterruptedException {
            pacer.serve(serviceNanos);
        }

        @Override
        public void flush(boolean endOfInput) throws InterruptedException {
            Thread.sleep(flushMillis);
        }

        @Override
        public void close() throws IOException {}
    }
}
