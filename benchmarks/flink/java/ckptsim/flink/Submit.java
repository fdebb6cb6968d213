package ckptsim.flink;

import java.util.concurrent.TimeUnit;
import org.apache.flink.client.program.rest.RestClusterClient;

/** Submits a {@link PacedJob} to a cluster whose task managers have these classes; the options say where its REST interface is. */
public final class Submit {
    private static final long PATIENCE_SECONDS = 60;

    private Submit() {}

    public static void main(String[] words) throws Exception {
        Arguments arguments = Arguments.parse(words, 0);
        var graph = PacedJob.graph(arguments);
        try (RestClusterClient<String> cluster = new RestClusterClient<>(arguments.flink, "standalone")) {
            System.out.println("job " + cluster.submitJob(graph.getJobGraph()).get(PATIENCE_SECONDS, TimeUnit.SECONDS));
        }
    }
}
