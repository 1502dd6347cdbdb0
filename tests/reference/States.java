import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.*;
import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.config.SiddhiAppContext;
import io.siddhi.core.event.ComplexEvent;
import io.siddhi.core.event.state.StateEvent;
import io.siddhi.core.event.stream.StreamEvent;
import io.siddhi.core.util.snapshot.state.State;
import io.siddhi.core.util.snapshot.state.StateHolder;
import java.lang.reflect.Field;
import java.util.*;

/**
 * The state of each element of an app, as its snapshot service has it. That is what SiddhiDebugger.getQueryState reads
 * too, but under a partition id that 5.1.30 no longer uses, so that its answer is always empty.
 */
public class States {
    static ArrayNode of(SiddhiAppRuntime rt) throws Exception {
        ArrayNode out = Oracle.M.createArrayNode();
        SiddhiAppContext context = (SiddhiAppContext) field(rt, "siddhiAppContext");
        Map<?, ?> partitions = (Map<?, ?>) field(context.getSnapshotService(), "partitionIdStates");
        for (Object partition : partitions.values())
            for (Map.Entry<?, ?> query : map(partition).entrySet())
                for (Map.Entry<?, ?> element : map(query.getValue()).entrySet())
                    add(out, String.valueOf(query.getKey()), String.valueOf(element.getKey()), (StateHolder<?>) element.getValue());
        return out;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void add(ArrayNode out, String query, String element, StateHolder holder) {
        Map<String, Map<String, State>> states = holder.getAllStates();
        try {
            states.forEach((key, groups) -> groups.forEach((group, state) -> {
                ObjectNode n = out.addObject();
                n.put("query", query).put("element", element.replaceAll("io\\.siddhi\\.[a-z.]*", ""));
                n.put("key", key).put("group", group);
                n.set("state", json(state.snapshot()));
            }));
        } finally {
            holder.returnAllStates(states);
        }
    }

    /** An event is [timestamp, values], events that are linked are a list of these, and a partial match a list of them by state. */
    static JsonNode json(Object o) {
        if (o instanceof StreamEvent) {
            ArrayNode n = Oracle.M.createArrayNode();
            for (ComplexEvent e = (StreamEvent) o; e != null; e = e.getNext()) {
                StreamEvent s = (StreamEvent) e;
                ArrayNode values = n.addArray().add(s.getTimestamp()).addArray();
                for (Object[] part : new Object[][] {s.getBeforeWindowData(), s.getOnAfterWindowData(), s.getOutputData()})
                    if (part != null) for (Object v : part) values.add(Oracle.json(v));
            }
            return n;
        }
        if (o instanceof StateEvent) {
            ArrayNode n = Oracle.M.createArrayNode();
            for (ComplexEvent e = (StateEvent) o; e != null; e = e.getNext()) {
                ArrayNode slots = n.addArray();
                for (StreamEvent s : ((StateEvent) e).getStreamEvents()) slots.add(s == null ? Oracle.M.createArrayNode() : json(s));
            }
            return n;
        }
        if (o instanceof Collection) {
            ArrayNode n = Oracle.M.createArrayNode();
            for (Object x : (Collection<?>) o) {
                JsonNode j = json(x);
                if (x instanceof ComplexEvent) j.forEach(n::add); else n.add(j);
            }
            return n;
        }
        if (o instanceof Map) {
            ObjectNode n = Oracle.M.createObjectNode();
            ((Map<?, ?>) o).forEach((k, v) -> n.set(String.valueOf(k), json(v)));
            return n;
        }
        if (o != null && o.getClass().getSimpleName().equals("Snapshot")) {
            try { return json(field(o, "state")); } catch (Exception e) { return TextNode.valueOf("<" + e + ">"); }
        }
        return Oracle.json(o);
    }

    static Map<?, ?> map(Object holder) throws Exception {
        for (Field f : holder.getClass().getDeclaredFields()) {
            f.setAccessible(true);
            if (f.get(holder) instanceof Map) return (Map<?, ?>) f.get(holder);
        }
        throw new NoSuchFieldException("a map of " + holder.getClass());
    }

    static Object field(Object o, String name) throws Exception {
        for (Class<?> c = o.getClass(); c != null; c = c.getSuperclass())
            for (Field f : c.getDeclaredFields())
                if (f.getName().equals(name)) { f.setAccessible(true); return f.get(o); }
        throw new NoSuchFieldException(name);
    }
}
