import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiAppRuntimeImpl;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.aggregation.AggregationRuntime;
import io.siddhi.core.aggregation.Executor;
import io.siddhi.core.aggregation.IncrementalExecutor;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.output.StreamCallback;
import io.siddhi.core.util.config.InMemoryConfigManager;
import io.siddhi.core.util.persistence.FileSystemPersistenceStore;
import io.siddhi.core.util.persistence.InMemoryPersistenceStore;
import io.siddhi.core.util.persistence.PersistenceStore;
import io.siddhi.core.util.persistence.util.PersistenceConstants;
import io.siddhi.extension.store.rdbms.RDBMSEventTable;
import io.siddhi.query.api.definition.Attribute;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Real Siddhi nodes that share a database. A line of JSON is a case: {"id", "app", "nodes": [shard ids], "watch":
 * [streams], "steps"}; a step is {"node", "data", "stream"}, an event whose last attribute is its time, of the app's one
 * stream where none is named; {"node", "query"}; {"node", "persist"}, {"node", "restore"}, which save and load a node's
 * state; {"node", "restart": shard id}, a new start; or {"wait": ms}. Where a shard id is null the aggregation is not
 * partitioned by id. A node writes what an event closes before the next step. The answer is the case's id with the rows
 * of each query, the wall's clock at each step and the events of the watched streams ([node, stream, values]), or with an
 * error. After a case with "open" its nodes run on, and a later line with its id has further steps. "folder": where nodes
 * save their state, in place of their memory. Lines are answered by as many threads as the argument says.
 */
public class Live {
  private static final Gson GSON = new GsonBuilder().serializeNulls().serializeSpecialFloatingPointValues().create();
  private static final Map<Integer, Live> CLUSTERS = new ConcurrentHashMap<>();
  private final JsonObject given;
  private final JsonArray events = new JsonArray();
  private final List<SiddhiManager> managers = new ArrayList<>();
  private final List<SiddhiAppRuntime> nodes = new ArrayList<>();

  public static void main(String[] arguments) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(Integer.parseInt(arguments[0]));
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonObject given = JsonParser.parseString(line).getAsJsonObject();
      threads.execute(() -> answer(given));
    }
    threads.shutdown();
    threads.awaitTermination(1, TimeUnit.DAYS);
    System.exit(0);
  }

  private static void answer(JsonObject given) {
    int id = given.get("id").getAsInt();
    JsonObject answer = new JsonObject();
    answer.addProperty("id", id);
    JsonArray results = new JsonArray();
    answer.add("results", results);
    JsonArray times = new JsonArray();
    answer.add("times", times);
    Live cluster = CLUSTERS.computeIfAbsent(id, number -> new Live(given));
    try {
      cluster.run(given.getAsJsonArray("steps"), results, times);
      if (!given.has("open")) {
        cluster.close();
      }
    } catch (Throwable failure) {
      answer.addProperty("error", failure.toString());
    }
    if (!given.has("open")) {
      CLUSTERS.remove(id);
    }
    synchronized (cluster.events) {
      answer.add("events", cluster.events);
      synchronized (GSON) {
        System.out.println("@" + GSON.toJson(answer));
        System.out.flush();
      }
    }
  }

  private Live(JsonObject given) {
    this.given = given;
  }

  private void run(JsonArray steps, JsonArray results, JsonArray times) throws Exception {
    for (JsonElement shard : nodes.isEmpty() ? given.getAsJsonArray("nodes") : new JsonArray()) {
      SiddhiManager manager = new SiddhiManager();
      manager.setExtension("store:rdbms", RDBMSEventTable.class);
      manager.setPersistenceStore(given.has("folder") ? files() : new InMemoryPersistenceStore());
      managers.add(manager);
      nodes.add(create(nodes.size(), shard));
      nodes.get(nodes.size() - 1).start();
    }
    for (JsonElement element : steps) {
      JsonObject step = element.getAsJsonObject();
      times.add(System.currentTimeMillis());
      if (step.has("wait")) {
        Thread.sleep(step.get("wait").getAsLong());
        for (SiddhiAppRuntime each : nodes) {
          awaitWriters(each, false);
        }
        continue;
      }
      int number = step.get("node").getAsInt();
      SiddhiAppRuntime node = nodes.get(number);
      if (step.has("query")) {
        results.add(ask(node, step.get("query").getAsString()));
      } else if (step.has("persist")) {
        node.persist().getFuture().get();
      } else if (step.has("restore")) {
        node.restoreLastRevision();
      } else if (step.has("restart")) {
        stop(node);
        nodes.set(number, create(number, step.get("restart")));
        nodes.get(number).start();
      } else {
        send(node, step);
        awaitWriters(node, false);
      }
    }
  }

  private PersistenceStore files() {
    FileSystemPersistenceStore store = new FileSystemPersistenceStore();
    Map<String, String> folder = Map.of("location", given.get("folder").getAsString());
    store.setProperties(Map.of(PersistenceConstants.STATE_PERSISTENCE_CONFIGS, folder));
    return store;
  }

  private void close() throws Exception {
    for (SiddhiAppRuntime node : nodes) {
      stop(node);
    }
    managers.forEach(SiddhiManager::shutdown);
  }

  private static void stop(SiddhiAppRuntime node) throws Exception {
    awaitWriters(node, true);
    node.shutdown();
  }

  /** A node writes the buckets of each duration to the database in a thread that it does not end. */
  private static void awaitWriters(SiddhiAppRuntime node, boolean areEnded) throws Exception {
    Field writer = IncrementalExecutor.class.getDeclaredField("executorService");
    writer.setAccessible(true);
    for (AggregationRuntime aggregation : ((SiddhiAppRuntimeImpl) node).getAggregationMap().values()) {
      for (Map<?, Executor> executors : aggregation.getAggregationDurationExecutorMap().values()) {
        for (Executor executor : executors.values()) {
          ExecutorService service = (ExecutorService) writer.get(executor);
          service.submit(() -> {}).get();
          if (areEnded) {
            service.shutdown();
          }
        }
      }
    }
  }

  private SiddhiAppRuntime create(int number, JsonElement shard) {
    Map<String, String> properties = new HashMap<>();
    if (!shard.isJsonNull()) {
      properties.put("shardId", shard.getAsString());
      properties.put("partitionById", "true");
    }
    SiddhiManager manager = managers.get(number);
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

  private static JsonElement ask(SiddhiAppRuntime node, String query) {
    JsonArray rows = new JsonArray();
    Event[] events = node.query(query);
    for (Event event : events == null ? new Event[0] : events) {
      rows.add(GSON.toJsonTree(event.getData()));
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
