package ckptsim.flink;

import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.Collections;
import java.util.StringJoiner;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.FallbackKey;
import org.apache.flink.configuration.MemorySize;

/** Prints every option in Flink's jars on the class path as a line: key, default, and other keys that are read for it, with tabs between. */
public final class OptionNames {

    public static void main(String[] arguments) throws Exception {
        for (String file : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (file.matches(".*/flink-[^/]*\\.jar")) {
                for (JarEntry entry : Collections.list(new JarFile(file).entries())) {
                    String name = entry.getName();
                    if (name.matches("org/apache/flink/.*\\.class") && !name.contains("shaded")) {
                        print(name.replace('/', '.').substring(0, name.length() - ".class".length()));
                    }
                }
            }
        }
    }

    private static void print(String name) {
        try {
            for (Field field : Class.forName(name, false, OptionNames.class.getClassLoader()).getDeclaredFields()) {
                if (field.getType() == ConfigOption.class && Modifier.isStatic(field.getModifiers())) {
                    field.setAccessible(true);
                    print((ConfigOption<?>) field.get(null));
                }
            }
        } catch (ReflectiveOperationException | LinkageError missing) {
            // a class of something that is not in this distribution
        }
    }

    private static void print(ConfigOption<?> option) {
        StringJoiner others = new StringJoiner(" ");
        for (FallbackKey other : option.fallbackKeys()) {
            others.add(other.getKey());
        }
        System.out.println(option.key() + "\t" + text(option.defaultValue()) + "\t" + others);
    }

    private static String text(Object value) {
        if (value instanceof Duration) {
            return ((Duration) value).toMillis() + " ms";
        }
        return value instanceof MemorySize ? ((MemorySize) value).getBytes() + " b" : String.valueOf(value);
    }
}
