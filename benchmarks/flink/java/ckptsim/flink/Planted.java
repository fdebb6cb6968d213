package ckptsim.flink;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.runtime.taskexecutor.TaskManagerRunner;

/**
 * A task manager with a fault in it that a file turns on and off: lines of {@code key=value} in the file that the property
 * {@code ckptsim.planted} names.
 *
 * <p>bandwidth (bytes per second of each file that is written, instead of {@code fs.paced.bandwidth}), savepoints (the same for paths of
 * savepoints), full (true: every write fails), hoard (share of the heap that is kept alive while more is allocated).
 */
public final class Planted {
    static final String SAVEPOINTS = "/savepoints/";
    private static final String FILE = System.getProperty("ckptsim.planted");
    private static final long EVERY_MS = 50;
    private static final int BLOCK = 1 << 14;
    private static volatile Map<String, String> faults = Map.of();

    private Planted() {}

    public static void main(String[] words) throws Exception {
        daemon("planted", Planted::read);
        daemon("hoard", Planted::hoard);
        TaskManagerRunner.main(words);
    }

    /** Bytes per second of a file, or what it has without a fault. */
    static long bandwidth(String path, long otherwise) {
        String planted = faults.get(path.contains(SAVEPOINTS) ? "savepoints" : "bandwidth");
        return planted == null ? otherwise : Long.parseLong(planted);
    }

    static void checkSpace() throws IOException {
        if (Boolean.parseBoolean(faults.get("full"))) {
            throw new IOException("No space left on device");
        }
    }

    private static void read() {
        while (true) {
            try {
                Map<String, String> found = new HashMap<>();
                for (String line : Files.readAllLines(Path.of(FILE))) {
                    String[] pair = line.split("=", 2);
                    if (pair.length == 2) {
                        found.put(pair[0].trim(), pair[1].trim());
                    }
                }
                faults = found;
            } catch (IOException absent) {
                faults = Map.of();
            }
            pause(EVERY_MS);
        }
    }

    /** Blocks of live memory up to the share, then garbage beside them. */
    private static void hoard() {
        List<byte[]> kept = new ArrayList<>();
        Runtime heap = Runtime.getRuntime();
        while (true) {
            String share = faults.get("hoard");
            if (share == null) {
                kept.clear();
                pause(EVERY_MS);
                continue;
            }
            double most = Double.parseDouble(share) * heap.maxMemory();
            try {
                byte[] block = new byte[BLOCK];
                if ((double) kept.size() * BLOCK < most) {
                    kept.add(block);
                } else {
                    kept.set((int) (System.nanoTime() & 1023) % kept.size(), block);
                }
            } catch (OutOfMemoryError full) {
                kept.subList(kept.size() / 2, kept.size()).clear();
            }
        }
    }

    private static void daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
