import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.output.StreamCallback;
import io.siddhi.core.util.config.InMemoryConfigManager;
import io.siddhi.core.util.persistence.InMemoryPersistenceStore;
import io.siddhi.extension.store.rdbms.RDBMSEventTable;
import io.siddhi.query.api.definition.Attribute;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Real Siddhi nodes that share a database. A case is a line of JSON: {"id", "app", "nodes": [shard ids], "watch":
 * [streams], "steps"}; a step is {"node", "data", "stream"}, an event whose last attribute is its time, of the app's one
 * stream where none is named; {"node", "query"}; or {"node", "restart": shard id, "persisted"}, a new start with the state
 * of before or without. The answer is the case's id with the rows of each query and the events of the watched streams
 * ([node, stream, values]), or with an error.
 */
public class Live {
  private static final Gson GSON = new GsonBuilder().serializeNulls().serializeSpecialFloatingPointValues().create();
  /** A retrieval is asked again until its rows stay the same: nodes write to the database in threads of their own. */
  private static final int EQUAL_ANSWERS = 4, TRIES = 40, PAUSE_MS = 300;

  public static void main(String[] arguments) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonObject given = JsonParser.parseString(line).getAsJsonObject();
      JsonObject answer = new JsonObject();
      answer.add("id", given.get("id"));
      JsonArray results = new JsonArray();
      answer.add("results", results);
      JsonArray events = new JsonArray();
      answer.add("events", events);
      List<SiddhiManager> managers = new ArrayList<>();
      List<SiddhiAppRuntime> nodes = new ArrayList<>();
      try {
        for (JsonElement shard : given.getAsJsonArray("nodes")) {
          SiddhiManager manager = new SiddhiManager();
          manager.setExtension("store:rdbms", RDBMSEventTable.class);
          manager.setPersistenceStore(new InMemoryPersistenceStore());
          managers.add(manager);
          nodes.add(start(manager, given, nodes.size(), shard.getAsString(), events));
          nodes.get(nodes.size() - 1).start();
        }
        for (JsonElement element : given.getAsJsonArray("steps")) {
          JsonObject step = element.getAsJsonObject();
          int number = step.get("node").getAsInt();
          SiddhiAppRuntime node = nodes.get(number);
          if (step.has("query")) {
            results.add(ask(node, step.get("query").getAsString()));
          } else if (step.has("restart")) {
            Thread.sleep(PAUSE_MS);
            boolean isPersisted = step.get("persisted").getAsBoolean();
            if (isPersisted) {
              node.persist().getFuture().get();
            }
            node.shutdown();
            node = start(managers.get(number), given, number, step.get("restart").getAsString(), events);
            nodes.set(number, node);
            node.start();
            if (isPersisted) {
              node.restoreLastRevision();
            }
          } else {
            send(node, step);
          }
        }
        Thread.sleep(PAUSE_MS);
      } catch (Exception failure) {
        answer.addProperty("error", failure.toString());
      }
      nodes.forEach(SiddhiAppRuntime::shutdown);
      managers.forEach(SiddhiManager::shutdown);
      synchronized (events) {
        System.out.println("@" + GSON.toJson(answer));
      }
      System.out.flush();
    }
    System.exit(0);
  }

  private static SiddhiAppRuntime start(SiddhiManager manager, JsonObject given, int number, String shard,
      JsonArray events) {
    Map<String, String> properties = new HashMap<>();
    properties.put("shardId", shard);
    properties.put("partitionById", "true");
    manager.setConfigManager(new InMemoryConfigManager(new HashMap<>(), properties, properties));
    SiddhiAppRuntime node = manager.createSiddhiAppRuntime(given.get("app").getAsString());
    for (JsonElement watched : given.getAsJsonArray("watch")) {
      node.addCallback(watched.getAsString(), new StreamCallback() {
        @Override
        public void receive(Event[] received) {
          synchronized (events) {
            for (Event event : received) {
              JsonArray entry = new JsonArray();
              entry.add(number);
              entry.add(watched.getAsString());
              entry.add(GSON.toJsonTree(event.getData()));
              events.add(entry);
            }
          }
        }
      });
    }
    return node;
  }

  private static JsonElement ask(SiddhiAppRuntime node, String query) throws InterruptedException {
    List<String> previous = null;
    JsonArray rows = new JsonArray();
    int equal = 0;
    for (int tried = 0; tried < TRIES && equal < EQUAL_ANSWERS; tried++) {
      Thread.sleep(PAUSE_MS);
      rows = new JsonArray();
      Event[] events = node.query(query);
      for (Event event : events == null ? new Event[0] : events) {
        rows.add(GSON.toJsonTree(event.getData()));
      }
      List<String> present = new ArrayList<>();
      rows.forEach(row -> present.add(row.toString()));
      present.sort(null);
      equal = present.equals(previous) ? equal + 1 : 0;
      previous = present;
    }
    return rows;
  }

  private static void send(SiddhiAppRuntime node, JsonObject step) throws InterruptedException {
    String stream =
        step.has("stream") ? step.get("stream").getAsString() : node.getStreamDefinitionMap().keySet().iterator().next();
    JsonArray data = step.getAsJsonArray("data");
    List<Attribute> attributes = node.getStreamDefinitionMap().get(stream).getAttributeList();
    Object[] values = new Object[data.size()];
    for (int i = 0; i < values.length; i++) {
      JsonElement value = data.get(i);
      switch (attributes.get(i).getType()) {
        case INT: values[i] = value.getAsInt(); break;
        case LONG: values[i] = value.getAsLong(); break;
        case DOUBLE: values[i] = value.getAsDouble(); break;
        default: values[i] = value.getAsString();
      }
    }
    node.getInputHandler(stream).send((Long) values[values.length - 1], values);
  }
}
