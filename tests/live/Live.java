import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.util.config.InMemoryConfigManager;
import io.siddhi.extension.store.rdbms.RDBMSEventTable;
import io.siddhi.query.api.definition.Attribute;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Real Siddhi nodes that share a database. A case is a line of JSON: {"id", "app", "nodes": [shard ids], "steps"}; a step
 * is {"node", "data"}, an event of the app's one stream whose last attribute is its time, or {"node", "query"}. The answer
 * is the case's id with the rows of each query, or with an error.
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
      List<SiddhiManager> managers = new ArrayList<>();
      List<SiddhiAppRuntime> nodes = new ArrayList<>();
      try {
        for (JsonElement shard : given.getAsJsonArray("nodes")) {
          SiddhiManager manager = new SiddhiManager();
          manager.setExtension("store:rdbms", RDBMSEventTable.class);
          Map<String, String> properties = new HashMap<>();
          properties.put("shardId", shard.getAsString());
          properties.put("partitionById", "true");
          manager.setConfigManager(new InMemoryConfigManager(new HashMap<>(), properties, properties));
          managers.add(manager);
          SiddhiAppRuntime node = manager.createSiddhiAppRuntime(given.get("app").getAsString());
          node.start();
          nodes.add(node);
        }
        for (JsonElement element : given.getAsJsonArray("steps")) {
          JsonObject step = element.getAsJsonObject();
          SiddhiAppRuntime node = nodes.get(step.get("node").getAsInt());
          if (step.has("query")) {
            results.add(ask(node, step.get("query").getAsString()));
          } else {
            send(node, step.getAsJsonArray("data"));
          }
        }
      } catch (Exception failure) {
        answer.addProperty("error", failure.toString());
      }
      nodes.forEach(SiddhiAppRuntime::shutdown);
      managers.forEach(SiddhiManager::shutdown);
      System.out.println("@" + GSON.toJson(answer));
      System.out.flush();
    }
    System.exit(0);
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

  private static void send(SiddhiAppRuntime node, JsonArray data) throws InterruptedException {
    String stream = node.getStreamDefinitionMap().keySet().iterator().next();
    List<Attribute> attributes = node.getStreamDefinitionMap().get(stream).getAttributeList();
    Object[] values = new Object[data.size()];
    for (int i = 0; i < values.length; i++) {
      JsonElement value = data.get(i);
      switch (attributes.get(i).getType()) {
        case LONG: values[i] = value.getAsLong(); break;
        case DOUBLE: values[i] = value.getAsDouble(); break;
        default: values[i] = value.getAsString();
      }
    }
    node.getInputHandler(stream).send((Long) values[values.length - 1], values);
  }
}
