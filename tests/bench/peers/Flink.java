import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.*;
import org.apache.flink.api.connector.sink2.*;
import org.apache.flink.configuration.*;
import org.apache.flink.table.api.*;
import org.apache.flink.table.catalog.ResolvedSchema;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.*;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.*;

/**
 * Runs one query in Flink SQL: Flink COLUMN SQL QUERY FILE REPETITIONS. A cluster in this process, parallelism 1, a CSV
 * without a header as input, a sink that only counts, a checkpoint each second beside the file. A repetition is a job
 * of its own, planned anew.
 */
public class Flink {
    static volatile long rows;
    static volatile double sum;

    public static void main(String[] a) throws Exception {
        String column = a[0], sql = a[1], query = a[2], file = a[3];
        Configuration c = Configuration.fromMap(Map.of(
            "execution.checkpointing.interval", "1 s",
            "execution.checkpointing.storage", "filesystem",
            "execution.checkpointing.dir", new java.io.File(file + ".checkpoints").toURI().toString()));
        c.set(CoreOptions.DEFAULT_PARALLELISM, 1);
        c.set(TaskManagerOptions.NUM_TASK_SLOTS, 1);
        TableEnvironment env = TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(c).build());
        env.getConfig().set("table.local-time-zone", "UTC");
        // Events are in order: a millisecond back, as events of equal times are not late.
        env.executeSql("CREATE TEMPORARY TABLE Trades (symbol STRING, price DOUBLE, quantity BIGINT, `timestamp` BIGINT, "
            + "rt AS TO_TIMESTAMP_LTZ(`timestamp`, 3), WATERMARK FOR rt AS rt - INTERVAL '0.001' SECOND) WITH ("
            + "'connector' = 'filesystem', 'path' = '" + file + "', 'format' = 'csv')");
        ResolvedSchema schema = env.sqlQuery(sql).getResolvedSchema();
        env.createTemporaryTable("Counted", TableDescriptor.forConnector("counting")
            .schema(Schema.newBuilder().fromResolvedSchema(schema).build())
            .option("index", "" + schema.getColumnNames().indexOf(column)).build());
        OperatingSystemMXBean process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        for (int k = Integer.parseInt(a[4]); k > 0; k--) {
            rows = 0;
            sum = 0;
            long cpu = process.getProcessCpuTime(), wall = System.nanoTime();
            env.sqlQuery(sql).insertInto("Counted").execute().await();
            wall = System.nanoTime() - wall;
            cpu = process.getProcessCpuTime() - cpu;
            System.out.printf(Locale.ROOT, "{\"query\": \"%s\", \"rows\": %d, \"sum\": %s, \"cpu\": %.4f, \"wall\": %.4f}%n",
                query, rows, sum, cpu / 1e9, wall / 1e9);
        }
        System.exit(0);
    }

    /** Counts rows and adds one of their columns, in Flink's own format of rows. */
    public static class Counting implements Sink<RowData> {
        final int index;
        Counting(int index) { this.index = index; }
        @Override public SinkWriter<RowData> createWriter(WriterInitContext context) {
            return new SinkWriter<>() {
                @Override public void write(RowData row, Context context) { n++; total += row.getDouble(index); }
                @Override public void flush(boolean end) { if (end) { rows = n; sum = total; } }
                @Override public void close() { }
                long n;
                double total;
            };
        }
    }

    public static class Factory implements DynamicTableSinkFactory {
        static final ConfigOption<Integer> INDEX = ConfigOptions.key("index").intType().noDefaultValue();
        @Override public String factoryIdentifier() { return "counting"; }
        @Override public Set<ConfigOption<?>> requiredOptions() { return Set.of(INDEX); }
        @Override public Set<ConfigOption<?>> optionalOptions() { return Set.of(); }
        @Override public DynamicTableSink createDynamicTableSink(Context context) {
            return new Table(FactoryUtil.createTableFactoryHelper(this, context).getOptions().get(INDEX));
        }
    }

    static class Table implements DynamicTableSink {
        final int index;
        Table(int index) { this.index = index; }
        @Override public ChangelogMode getChangelogMode(ChangelogMode wanted) { return ChangelogMode.insertOnly(); }
        @Override public SinkRuntimeProvider getSinkRuntimeProvider(Context context) { return SinkV2Provider.of(new Counting(index), 1); }
        @Override public DynamicTableSink copy() { return new Table(index); }
        @Override public String asSummaryString() { return "counting"; }
    }
}
