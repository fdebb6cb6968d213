package ckptsim.flink;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URI;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.fs.FSDataOutputStream;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.core.fs.FileSystemFactory;
import org.apache.flink.core.fs.Path;
import org.apache.flink.core.fs.local.LocalFileSystem;
import org.apache.flink.core.fs.local.LocalRecoverableWriter;

/**
 * The local file system under the scheme {@code paced}, as slow as remote storage: every open file takes {@code fs.paced.bandwidth} bytes
 * per second, and its close {@code fs.paced.close-ms} milliseconds. Reading is not delayed.
 */
final class PacedFileSystem extends LocalFileSystem {
    private final long bytesPerSecond;
    private final long closeMillis;

    private PacedFileSystem(long bytesPerSecond, long closeMillis) {
        this.bytesPerSecond = bytesPerSecond;
        this.closeMillis = closeMillis;
    }

    @Override
    public URI getUri() {
        return URI.create("paced:///");
    }

    @Override
    public boolean isDistributedFS() {
        return true;
    }

    @Override
    public FSDataOutputStream create(Path path, WriteMode mode) throws IOException {
        Planted.checkSpace();
        return new PacedStream(super.create(path, mode), path.getPath());
    }

    @Override
    public LocalRecoverableWriter createRecoverableWriter() {
        throw new UnsupportedOperationException("metadata is written like everything else");
    }

    private final class PacedStream extends FSDataOutputStream {
        private final FSDataOutputStream file;
        private final Pacer pacer = new Pacer();
        private final String path;
        private boolean closed;

        PacedStream(FSDataOutputStream file, String path) {
            this.file = file;
            this.path = path;
        }

        @Override
        public void write(int oneByte) throws IOException {
            file.write(oneByte);
            spend(1);
        }

        @Override
        public void write(byte[] bytes, int from, int length) throws IOException {
            file.write(bytes, from, length);
            spend(length);
        }

        @Override
        public long getPos() throws IOException {
            return file.getPos();
        }

        @Override
        public void flush() throws IOException {
            file.flush();
        }

        @Override
        public void sync() throws IOException {
            file.sync();
        }

        @Override
        public void close() throws IOException {
            if (closed) {
                return;
            }
            closed = true;
            try {
                Thread.sleep(closeMillis);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new InterruptedIOException("closing");
            } finally {
                file.close();
            }
        }

        private void spend(long bytes) throws IOException {
            Planted.checkSpace();
            long perSecond = Planted.bandwidth(path, bytesPerSecond);
            if (perSecond > 0) {
                try {
                    pacer.serve(bytes * 1_000_000_000 / perSecond);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                    throw new InterruptedIOException("writing");
                }
            }
        }
    }

    /** Found by Flink through META-INF/services. */
    public static final class Factory implements FileSystemFactory {
        private long bytesPerSecond;
        private long closeMillis;

        @Override
        public String getScheme() {
            return "paced";
        }

        @Override
        public void configure(Configuration flink) {
            bytesPerSecond = Long.parseLong(flink.toMap().getOrDefault("fs.paced.bandwidth", "0"));
            closeMillis = Long.parseLong(flink.toMap().getOrDefault("fs.paced.close-ms", "0"));
        }

        @Override
        public FileSystem create(URI uri) {
            return new PacedFileSystem(bytesPerSecond, closeMillis);
        }
    }
}
