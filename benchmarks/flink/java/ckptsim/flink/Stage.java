package ckptsim.flink;

import java.util.SplittableRandom;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Serves each record for a stated time, keeps a value per key, passes the record on. With one input (as in {@link One}) or two.
 * A key's value is written when the key is first seen, later with the probability {@code update}.
 */
class Stage extends KeyedCoProcessFunction<Long, Event, Event, Event> {
    private final long[] serviceNanos;
    private final int valueBytes;
    private final double update;
    private transient Pacer pacer;
    private transient SplittableRandom random;
    private transient ValueState<byte[]> value;

    Stage(long firstMicros, long secondMicros, int valueBytes, double update) {
        this.serviceNanos = new long[] {firstMicros * 1000, secondMicros * 1000};
        this.valueBytes = valueBytes;
        this.update = update;
    }

    @Override
    public void open(OpenContext context) {
        pacer = new Pacer();
        random = new SplittableRandom(getRuntimeContext().getTaskInfo().getIndexOfThisSubtask());
        if (valueBytes > 0) {
            value = getRuntimeContext().getState(new ValueStateDescriptor<>("value", byte[].class));
        }
    }

    @Override
    public void processElement1(Event event, Context context, Collector<Event> out) throws Exception {
        serve(event, serviceNanos[0], out);
    }

    @Override
    public void processElement2(Event event, Context context, Collector<Event> out) throws Exception {
        serve(event, serviceNanos[1], out);
    }

    private void serve(Event event, long nanos, Collector<Event> out) throws Exception {
        pacer.serve(nanos);
        if (value != null && (random.nextDouble() < update || value.value() == null)) {
            byte[] bytes = new byte[valueBytes];
            random.nextBytes(bytes);
            value.update(bytes);
        }
        out.collect(event);
    }

    /** The same with one input. */
    static final class One extends org.apache.flink.streaming.api.functions.KeyedProcessFunction<Long, Event, Event> {
        private final Stage stage;

        One(long micros, int valueBytes, double update) {
            stage = new Stage(micros, 0, valueBytes, update);
        }

        @Override
        public void open(OpenContext context) {
            stage.setRuntimeContext(getRuntimeContext());
            stage.open(context);
        }

        @Override
        public void processElement(Event event, Context context, Collector<Event> out) throws Exception {
            stage.serve(event, stage.serviceNanos[0], out);
        }
    }
}
