package ckptsim.flink;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.concurrent.TimeUnit;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.graph.StreamGraph;

/**
 * A whole Flink in one process: job manager and task managers with the real network stack between them, every socket on loopback.
 *
 * <p>Started with {@code taskmanagers=N slots=N} and options of Flink, it prints {@code rest URL}, then obeys lines on its standard
 * input: {@code submit} and the arguments of a {@link PacedJob}, answered by {@code job ID} or {@code error REASON}. It ends when its
 * input does: whoever started it need not be alive to stop it.
 */
public final class LocalCluster {
    private static final long PATIENCE_SECONDS = 15;

    private LocalCluster() {}

    public static void main(String[] words) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // nothing else may come between the answers
        Arguments arguments = Arguments.parse(words, 0);
        int taskManagers = arguments.take("taskmanagers", 1);
        int slots = arguments.take("slots", 1);
        arguments.refuseTheRest();
        Configuration flink = arguments.flink;
        FileSystem.initialize(flink, null);
        MiniClusterConfiguration cluster = new MiniClusterConfiguration.Builder()
                .setConfiguration(flink).setNumTaskManagers(taskManagers).setNumSlotsPerTaskManager(slots).withRandomPorts().build();
        MiniCluster running = new MiniCluster(cluster);
        running.start();
        answers.println("rest " + running.getRestAddress().get().toString());
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            answers.println(answer(running, line.trim().split("\\s+")));
        }
        try {
            running.closeAsync().get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        } finally {
            Runtime.getRuntime().halt(0); // threads of user code that do not end keep nobody waiting
        }
    }

    private static String answer(MiniCluster running, String[] words) {
        try {
            if (!words[0].equals("submit")) {
                throw new IllegalArgumentException("no such order: " + words[0]);
            }
            StreamGraph graph = PacedJob.graph(Arguments.parse(words, 1));
            return "job " + running.submitJob(graph.getJobGraph()).get(PATIENCE_SECONDS, TimeUnit.SECONDS).getJobID();
        } catch (Exception refused) {
            refused.printStackTrace();
            return "error " + refused.toString().replace('\n', ' ');
        }
    }
}
