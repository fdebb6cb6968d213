package ckptsim.flink;

import java.util.function.UnaryOperator;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource.NumberSequenceSplit;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;

/**
 * A job whose load is stated, in four shapes:
 *
 * <pre>
 * shuffle: source -hash-> map -hash-> sink
 * join:    fast source, slow source -hash-> join -hash-> sink
 * chain:   source -> parse (chained with the source unless chaining is off) -hash-> map -hash-> sink
 * window:  source -hash-> firing -hash-> sink
 * </pre>
 *
 * Arguments (all per subtask where that makes a difference): parallelism, record (payload bytes), rate and rate2 (records per second of
 * all subtasks of a source, 0: as many as there is room for), then and at (instead of rate from so many seconds after the start), map, map2 and sink (microseconds of service per record), state (bytes in
 * all), value (bytes per key), update (share of records that change their key's value), hot (share of records that carry the sink's one
 * hot key), flush (milliseconds, before each barrier of the sink), window (milliseconds of event time), fire (microseconds of each timer at the end of a window), keys (of windows), placement (shared: one slot holds a subtask of each vertex; isolated:
 * each has its own).
 */
final class PacedJob {
    private static final TypeInformation<Event> EVENT = Types.POJO(Event.class);
    private static final long MANY_KEYS = Long.MAX_VALUE; // spread evenly over subtasks

    private PacedJob() {}

    static StreamGraph graph(Arguments arguments) {
        String shape = arguments.take("shape", "shuffle", word -> word);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(arguments.flink);
        env.setParallelism(arguments.take("parallelism", 2));
        int record = arguments.take("record", 1000);
        double rate = arguments.take("rate", 0.0);
        double rate2 = arguments.take("rate2", 0.0);
        double then = arguments.take("then", 0.0);
        int at = arguments.take("at", 0);
        long map = arguments.take("map", 100L);
        long map2 = arguments.take("map2", map);
        long sink = arguments.take("sink", 1000L);
        int value = arguments.take("value", 1000);
        long keys = arguments.take("state", 0L) / value;
        double update = arguments.take("update", 1.0);
        double hot = arguments.take("hot", 0.0);
        long flush = arguments.take("flush", 0L);
        long window = arguments.take("window", 0L);
        long windowKeys = arguments.take("keys", 1L);
        long fire = arguments.take("fire", 0L);
        boolean isolated = arguments.take("placement", "shared", word -> word).equals("isolated");
        arguments.refuseTheRest();

        int valueBytes = keys > 0 ? value : 0;
        UnaryOperator<String> group = vertex -> isolated ? vertex : "default";
        KeySelector<Event, Long> stateKey = byKey(1, keys > 0 ? keys : MANY_KEYS, 0);
        SingleOutputStreamOperator<Event> mapped;
        switch (shape) {
            case "shuffle":
                mapped = keyed(source(env, "source", record, limit(rate, then, at), group), stateKey).process(new Stage.One(map, valueBytes, update)).name("map").uid("map");
                break;
            case "chain":
                DataStream<Event> parsed = source(env, "source", record, limit(rate, then, at), group).map(event -> event).returns(EVENT).name("parse").uid("parse");
                mapped = keyed(parsed, stateKey).process(new Stage.One(map, valueBytes, update)).name("map").uid("map");
                break;
            case "join":
                mapped = keyed(source(env, "fast", record, limit(rate, then, at), group), stateKey)
                        .connect(keyed(source(env, "slow", record, limit(rate2, 0, 0), group), stateKey))
                        .process(new Stage(map, map2, valueBytes, update)).name("join").uid("join");
                break;
            case "window":
                DataStream<Event> marked = source(env, "source", record, limit(rate, then, at), group).assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Event>forMonotonousTimestamps().withTimestampAssigner((event, before) -> event.createdMs));
                mapped = keyed(marked, byKey(1, windowKeys, 0)).process(new Firing(map, window, fire)).name("firing").uid("firing");
                break;
            default:
                throw new IllegalArgumentException("no such shape: " + shape);
        }
        mapped.returns(EVENT).slotSharingGroup(group.apply("middle"));
        keyed(mapped, byKey(2, MANY_KEYS, hot)).sinkTo(new PacedSink(sink, flush)).name("sink").uid("sink").slotSharingGroup(group.apply("sink"));
        StreamGraph graph = env.getStreamGraph();
        graph.setJobName("paced-" + shape);
        return graph;
    }

    private static DataStream<Event> source(
            StreamExecutionEnvironment env, String name, int record, RateLimiterStrategy<NumberSequenceSplit> limit, UnaryOperator<String> group) {
        byte[] ballast = new byte[record];
        GeneratorFunction<Long, Event> make = number -> new Event(number, System.currentTimeMillis(), ballast);
        DataGeneratorSource<Event> source = new DataGeneratorSource<>(make, Long.MAX_VALUE, limit, EVENT);
        return env.fromSource(source, WatermarkStrategy.noWatermarks(), name).uid(name).slotSharingGroup(group.apply(name));
    }

    /** Records per second; from so many seconds after the source has started `then` of them. */
    private static RateLimiterStrategy<NumberSequenceSplit> limit(double perSecond, double then, int atSecond) {
        RateLimiterStrategy<NumberSequenceSplit> first = perSecond > 0 ? RateLimiterStrategy.perSecond(perSecond) : RateLimiterStrategy.noOp();
        return then > 0 ? new Later(first, RateLimiterStrategy.perSecond(then), 1000L * atSecond) : first;
    }

    private static KeyedStream<Event, Long> keyed(DataStream<Event> stream, KeySelector<Event, Long> by) {
        return stream.keyBy(by, Types.LONG);
    }

    private static KeySelector<Event, Long> byKey(int level, long keys, double hot) {
        return event -> Event.key(event.id, level, keys, hot);
    }
}
