package ckptsim.flink;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Keeps the last record of each key until its window of event time ends, then passes it on: all keys are due at once, and each takes a
 * stated time. It opts in to interruptible timers, as operators of SQL do and the DataStream API's own windows don't.
 */
final class Firing extends KeyedProcessFunction<Long, Event, Event> {
    private final long serviceNanos;
    private final long windowMillis;
    private final long fireNanos;
    private transient Pacer pacer;
    private transient ValueState<Event> last;

    Firing(long serviceMicros, long windowMillis, long fireMicros) {
        this.serviceNanos = serviceMicros * 1000;
        this.windowMillis = windowMillis;
        this.fireNanos = fireMicros * 1000;
    }

    @Override
    public boolean useInterruptibleTimers(ReadableConfig configuration) {
        return true;
    }

    @Override
    public void open(OpenContext context) {
        pacer = new Pacer();
        last = getRuntimeContext().getState(new ValueStateDescriptor<>("last", Event.class));
    }

    @Override
    public void processElement(Event event, Context context, Collector<Event> out) throws Exception {
        pacer.serve(serviceNanos);
        if (last.value() == null) {
            context.timerService().registerEventTimeTimer(Math.floorDiv(event.createdMs, windowMillis) * windowMillis + windowMillis - 1);
        }
        last.update(event);
    }

    @Override
    public void onTimer(long time, OnTimerContext context, Collector<Event> out) throws Exception {
        pacer.serve(fireNanos);
        out.collect(last.value());
        last.clear();
    }
}
