package lancecore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * The questions that the driver asks Python: what a table is, what to read of it, and where a write stands. When the process
 * dies, another one is asked again: an answer that nobody has seen changes nothing, and a commit goes on where it stood.
 */
final class Planner {
  private Planner() {}

  /** A table's columns and the version they were read from. */
  static final class Opened {
    final StructType schema;
    final String at;

    Opened(StructType schema, String at) {
      this.schema = schema;
      this.at = at;
    }
  }

  static Opened open(Map<String, String> options) {
    JsonNode found = Workers.askAgain(request("open", options));
    return new Opened((StructType) DataType.fromJson(found.get("schema").asText()), found.get("at").asText());
  }

  /** What a scan reads: opaque words for the tasks, and the size that the optimizer wants. */
  static final class Plan {
    final String reader;
    final String[] groups;
    final long rows;
    final long bytes;
    /** The column that each group has one value of; null where there is none. */
    final String clustered;
    /** These values. */
    final JsonNode keys;

    Plan(JsonNode found) {
      reader = found.get("reader").asText();
      JsonNode listed = found.get("groups");
      groups = new String[listed.size()];
      for (int index = 0; index < groups.length; index++) {
        groups[index] = listed.get(index).asText();
      }
      rows = found.get("rows").asLong();
      bytes = found.get("bytes").asLong();
      clustered = found.path("clustered").asText(null);
      keys = found.get("keys");
    }
  }

  /** `mayCluster`: whether groups of one value each are of use; `clustered`: of which column they have to be, null for any. */
  static Plan plan(Map<String, String> options, String at, StructType read, ArrayNode filters, int limit,
      Summary summary, int parallelism, boolean mayCluster, String clustered) {
    ObjectNode request = atVersion(request("plan", options), at);
    request.put("schema", read.json());
    request.set("filters", filters);
    request.put("limit", limit);
    if (summary != null) {
      request.set(summary.name, summary.described);
    }
    request.put("parallelism", parallelism).put("may_cluster", mayCluster);
    if (clustered != null) {
      request.put("clustered", clustered);
    }
    return new Plan(Workers.askAgain(request));
  }

  static long count(Map<String, String> options, String at) {
    return Workers.askAgain(atVersion(request("count", options), at)).get("rows").asLong();
  }

  /** Whether Lance decides of every row as Spark does. */
  static boolean isExact(Map<String, String> options, String at, ArrayNode predicates) {
    return Workers.askAgain(atVersion(request("exact", options), at).set("filters", predicates)).get("exact").asBoolean();
  }

  /** Deletes, at once, the rows of the newest version that satisfy all predicates. */
  static void delete(Map<String, String> options, String at, ArrayNode predicates) {
    ObjectNode request = atVersion(request("delete", options), at).put("identity", UUID.randomUUID().toString());
    Workers.askAgain(request.set("filters", predicates));
  }

  /**
   * Begins a write; `where`: the rows that it replaces, null for none or all; `read`: the version that its rows depend on, null
   * for none.
   */
  static JsonNode begin(Map<String, String> options, StructType schema, boolean overwrite, ArrayNode where, String read) {
    ObjectNode request = atVersion(request("begin", options), read);
    request.put("schema", schema.json());
    request.put("overwrite", overwrite);
    if (where != null) {
      request.set("where", where);
    }
    return Workers.askAgain(request);
  }

  /** Begins a batch of a stream, which is committed once however often it is run. */
  static JsonNode beginBatch(Map<String, String> options, StructType schema, boolean overwrite, String query, long batch) {
    ObjectNode request = request("begin", options);
    request.put("schema", schema.json());
    request.put("overwrite", overwrite);
    request.put("query", query).put("batch", batch);
    return Workers.askAgain(request);
  }

  /** Begins an UPDATE, a MERGE or a DELETE on the version that it reads. */
  static JsonNode beginEdit(
      Map<String, String> options, String at, StructType schema, RowLevelOperation.Command command) {
    ObjectNode request = atVersion(request("begin_edit", options), at);
    request.put("schema", schema.json()).put("statement", command.name().toLowerCase(Locale.ROOT));
    return Workers.askAgain(request);
  }

  static void commit(String writer, Iterable<String> results) {
    ObjectNode request = Worker.JSON.createObjectNode().put("do", "commit").put("writer", writer);
    results.forEach(request.putArray("results")::add);
    Workers.askAgain(request);
  }

  static void abort(String writer) {
    Workers.askAgain(Worker.JSON.createObjectNode().put("do", "abort").put("writer", writer));
  }

  private static ObjectNode atVersion(ObjectNode request, String at) {
    return at == null ? request : request.put("at", at);
  }

  private static ObjectNode request(String name, Map<String, String> options) {
    ObjectNode request = Worker.JSON.createObjectNode().put("do", name);
    options.forEach(request.putObject("options")::put);
    return request;
  }
}
