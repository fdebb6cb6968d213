package ckptsim.flink;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;
import org.apache.flink.configuration.Configuration;

/** A line of {@code key=value} words: those with a dot in the key are options of Flink, the others describe the job. Unknown ones are refused. */
final class Arguments {
    final Configuration flink = new Configuration();
    private final Map<String, String> job = new LinkedHashMap<>();

    static Arguments parse(String[] words, int from) {
        Arguments arguments = new Arguments();
        for (int i = from; i < words.length; i++) {
            int at = words[i].indexOf('=');
            if (at < 1) {
                throw new IllegalArgumentException("not of the form key=value: " + words[i]);
            }
            String key = words[i].substring(0, at);
            String value = words[i].substring(at + 1).replace("%20", " ");
            if (key.contains(".")) {
                arguments.flink.setString(key, value);
            } else {
                arguments.job.put(key, value);
            }
        }
        return arguments;
    }

    <T> T take(String key, T otherwise, Function<String, T> read) {
        String value = job.remove(key);
        return value == null ? otherwise : read.apply(value);
    }

    int take(String key, int otherwise) {
        return take(key, otherwise, Integer::valueOf);
    }

    long take(String key, long otherwise) {
        return take(key, otherwise, Long::valueOf);
    }

    double take(String key, double otherwise) {
        return take(key, otherwise, Double::valueOf);
    }

    void refuseTheRest() {
        if (!job.isEmpty()) {
            throw new IllegalArgumentException("unknown: " + job.keySet());
        }
    }
}
