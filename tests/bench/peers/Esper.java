import com.espertech.esper.common.client.*;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.*;
import com.espertech.esper.runtime.client.*;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.lang.management.*;
import java.nio.file.*;
import java.util.*;

/**
 * Runs one query in Esper: Esper COLUMN EPL QUERY FILE REPETITIONS. Its best case: one thread, events made before, a
 * clock that the events move, no locks and no order of listeners to keep. Repetitions after the first send the same
 * events again at later times to the statements that are deployed, whose compiled code is warm.
 */
public class Esper {
    public static class Trade {
        final String symbol; final double price; final long quantity;
        Trade(String s, double p, long q) { symbol = s; price = p; quantity = q; }
        public String getSymbol() { return symbol; }
        public double getPrice() { return price; }
        public long getQuantity() { return quantity; }
    }

    static long rows;
    static double sum;

    public static void main(String[] a) throws Exception {
        String column = a[0], epl = a[1], query = a[2];
        int repetitions = Integer.parseInt(a[4]);
        List<Trade> trades = new ArrayList<>();
        List<Long> times = new ArrayList<>();
        Map<String, String> symbols = new HashMap<>();
        try (BufferedReader r = Files.newBufferedReader(Path.of(a[3]))) {
            for (String line; (line = r.readLine()) != null; ) {
                String[] p = line.split(",");
                trades.add(new Trade(symbols.computeIfAbsent(p[0], k -> k), Double.parseDouble(p[1]), Long.parseLong(p[2])));
                times.add(Long.parseLong(p[3]));
            }
        }
        Trade[] events = trades.toArray(new Trade[0]);
        long[] at = times.stream().mapToLong(Long::longValue).toArray();

        Configuration c = new Configuration();
        c.getCommon().addEventType("Trade", Trade.class);
        c.getRuntime().getThreading().setInternalTimerEnabled(false);
        c.getRuntime().getThreading().setListenerDispatchPreserveOrder(false);
        c.getRuntime().getThreading().setInsertIntoDispatchPreserveOrder(false);
        c.getRuntime().getThreading().setNamedWindowConsumerDispatchPreserveOrder(false);
        c.getRuntime().getExecution().setDisableLocking(true);
        EPCompiled compiled = EPCompilerProvider.getCompiler().compile(epl, new CompilerArguments(c));
        EPRuntime runtime = EPRuntimeProvider.getRuntime("bench", c);
        runtime.getEventService().advanceTime(at[0] - 1);
        for (EPStatement s : runtime.getDeploymentService().deploy(compiled).getStatements()) {
            if (!s.getName().startsWith("out")) continue;
            EventPropertyGetter getter = s.getEventType().getGetter(column);
            s.addListener((fresh, old, statement, rt) -> {
                if (fresh == null) return;
                rows += fresh.length;
                for (EventBean e : fresh) sum += (Double) getter.get(e);
            });
        }

        OperatingSystemMXBean process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        EPEventService service = runtime.getEventService();
        long later = at[at.length - 1] - at[0] + 3_600_000;
        later -= later % 1000;
        for (int k = 0; k < repetitions; k++) {
            rows = 0;
            sum = 0;
            long cpu = process.getProcessCpuTime(), thread = threads.getCurrentThreadCpuTime(), wall = System.nanoTime();
            for (int i = 0; i < events.length; i++) {
                service.advanceTime(at[i] + k * later);
                service.sendEventBean(events[i], "Trade");
            }
            wall = System.nanoTime() - wall;
            thread = threads.getCurrentThreadCpuTime() - thread;
            cpu = process.getProcessCpuTime() - cpu;
            System.out.printf(Locale.ROOT, "{\"query\": \"%s\", \"rows\": %d, \"sum\": %s, \"cpu\": %.4f, \"wall\": %.4f, \"part\": %.4f}%n",
                query, rows, sum, cpu / 1e9, wall / 1e9, thread / 1e9);
        }
        System.exit(0);
    }
}
