package lancecore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Lance tables by name in SQL: `spark.sql.catalog.lake = lancecore.spark.LanceCatalog`, `spark.sql.catalog.lake.uri = ...`.
 * What a name means is known in Python only. Its settings travel with each question, so two catalogs share no credential.
 */
public class LanceCatalog implements StagingTableCatalog, SupportsNamespaces {
  private String name;
  private Map<String, String> settings;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.settings = new HashMap<>(options.asCaseSensitiveMap());
  }

  @Override
  public String name() {
    return name;
  }

  final ObjectNode request(String what, String... id) {
    ObjectNode request = Worker.JSON.createObjectNode().put("do", "catalog." + what);
    settings.forEach(request.putObject("catalog")::put);
    ArrayNode parts = request.putArray("id");
    for (String part : id) {
      parts.add(part);
    }
    return request;
  }

  private ObjectNode request(String what, Identifier table) {
    String[] id = new String[table.namespace().length + 1];
    System.arraycopy(table.namespace(), 0, id, 0, id.length - 1);
    id[id.length - 1] = table.name();
    return request(what, id);
  }

  // What the catalog of Spark 4 needs besides

  /** Makers of JSON. */
  protected final com.fasterxml.jackson.databind.ObjectMapper json() {
    return Worker.JSON;
  }

  /** The procedures of SQL, each with its arguments. */
  protected final JsonNode procedures() {
    return Workers.askAgain(request("procedures")).get("procedures");
  }

  /** Carries one out; its report as names and values. */
  protected final Scan call(String procedure, ObjectNode arguments) {
    ObjectNode request = request("call").put("procedure", procedure);
    request.set("arguments", arguments);
    StructType facts = new StructType().add("name", DataTypes.StringType).add("value", DataTypes.StringType);
    return new LocalRows(facts, facts, Workers.ask(request).get("rows"));
  }

  // Tables

  @Override
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    String[] names = names("tables", namespace);
    Identifier[] found = new Identifier[names.length];
    for (int index = 0; index < found.length; index++) {
      found[index] = Identifier.of(namespace, names[index]);
    }
    return found;
  }

  @Override
  public Table loadTable(Identifier table) throws NoSuchTableException {
    return load(table, request("load", table));
  }

  @Override
  public Table loadTable(Identifier table, String version) throws NoSuchTableException {
    return load(table, request("load", table).put("version", version));
  }

  @Override
  public Table loadTable(Identifier table, long microseconds) throws NoSuchTableException {
    return load(table, request("load", table).put("asof", microseconds));
  }

  private Table load(Identifier table, ObjectNode request) throws NoSuchTableException {
    JsonNode found = Workers.askAgain(request);
    if (!found.get("exists").asBoolean()) {
      throw new NoSuchTableException(table);
    }
    StructType schema = (StructType) DataType.fromJson(found.get("schema").asText());
    if (found.has("rows")) {
      return new LocalRows.Rows(shown(table), schema, found.get("rows"));
    }
    return new LanceTable.Named(shown(table), schema, texts(found.get("options")), found.get("at").asText(),
        texts(found.get("properties")));
  }

  private String shown(Identifier table) {
    return name + "." + table;
  }

  @Override
  @SuppressWarnings("deprecation") // the form that Spark 3.5 to 4.2 all have
  public Table createTable(Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    JsonNode made = Workers.ask(creation(table, schema, partitions, properties));
    check(table, made, false);
    try {
      return loadTable(table);
    } catch (NoSuchTableException gone) {
      throw new IllegalStateException("lance: " + shown(table) + " was dropped as it was created", gone);
    }
  }

  private ObjectNode creation(Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties) {
    if (partitions.length > 0) {
      throw new UnsupportedOperationException("lance: tables have no partitions; leave PARTITIONED BY out, and use an index "
          + "or REPLACE WHERE for a part of a table");
    }
    ObjectNode request = request("create", table).put("schema", schema.json());
    properties.forEach(request.putObject("properties")::put);
    return request;
  }

  private static void check(Identifier table, JsonNode made, boolean replaces)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (!made.get("namespace").asBoolean()) {
      throw new NoSuchNamespaceException(table.namespace());
    }
    if (made.get("exists").asBoolean() && !replaces) {
      throw new TableAlreadyExistsException(table);
    }
  }

  @Override
  public Table alterTable(Identifier table, TableChange... changes) throws NoSuchTableException {
    ObjectNode request = request("alter", table);
    ArrayNode described = request.putArray("changes");
    for (TableChange change : changes) {
      described.add(Changes.describe(change));
    }
    if (!Workers.ask(request).get("exists").asBoolean()) {
      throw new NoSuchTableException(table);
    }
    return loadTable(table);
  }

  @Override
  public boolean dropTable(Identifier table) {
    return Workers.ask(request("drop", table)).get("dropped").asBoolean();
  }

  @Override
  public boolean purgeTable(Identifier table) {
    return dropTable(table); // a dropped table leaves no file
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw new UnsupportedOperationException("lance: a table cannot be renamed; CREATE TABLE ... AS SELECT, then DROP TABLE");
  }

  // CREATE and REPLACE TABLE ... AS SELECT: one version, or nothing

  @Override
  @SuppressWarnings("deprecation") // the form that Spark 3.5 to 4.2 all have
  public StagedTable stageCreate(Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return staged(table, schema, partitions, properties, false);
  }

  @Override
  @SuppressWarnings("deprecation")
  public StagedTable stageReplace(Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException, NoSuchTableException {
    if (!tableExists(table)) {
      throw new NoSuchTableException(table);
    }
    return stageCreateOrReplace(table, schema, partitions, properties);
  }

  @Override
  @SuppressWarnings("deprecation")
  public StagedTable stageCreateOrReplace(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException {
    try {
      return staged(table, schema, partitions, properties, true);
    } catch (TableAlreadyExistsException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  private StagedTable staged(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties, boolean replaces)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    ObjectNode request = creation(table, schema, partitions, properties).put("declare", true).put("replaces", replaces);
    JsonNode made = Workers.ask(request);
    check(table, made, replaces);
    return new Staged(shown(table), schema, texts(made.get("options")));
  }

  /** The rows of the statement are an overwrite, which makes the table where there is none; without rows, an empty one. */
  private static final class Staged extends LanceTable implements StagedTable {
    private boolean written;

    Staged(String name, StructType schema, Map<String, String> options) {
      super(name, schema, options, null);
    }

    @Override
    public org.apache.spark.sql.connector.write.WriteBuilder newWriteBuilder(
        org.apache.spark.sql.connector.write.LogicalWriteInfo info) {
      written = true;
      return new LanceWrite.Builder(options, info, () -> null).truncate();
    }

    @Override
    public void commitStagedChanges() {
      if (!written) {
        JsonNode begun = Planner.begin(options, schema, true, null, null);
        Planner.commit(begun.get("writer").asText(), java.util.List.of());
      }
    }

    @Override
    public void abortStagedChanges() {} // the write has removed its files
  }

  // Namespaces

  @Override
  public String[][] listNamespaces() throws NoSuchNamespaceException {
    return listNamespaces(new String[0]);
  }

  @Override
  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    String[] names = names("namespaces", namespace);
    String[][] found = new String[names.length][];
    for (int index = 0; index < found.length; index++) {
      found[index] = java.util.Arrays.copyOf(namespace, namespace.length + 1);
      found[index][namespace.length] = names[index];
    }
    return found;
  }

  private String[] names(String what, String[] namespace) throws NoSuchNamespaceException {
    JsonNode found = Workers.askAgain(request(what, namespace));
    if (!found.get("exists").asBoolean()) {
      throw new NoSuchNamespaceException(namespace);
    }
    String[] names = new String[found.get("names").size()];
    for (int index = 0; index < names.length; index++) {
      names[index] = found.get("names").get(index).asText();
    }
    return names;
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    JsonNode found = Workers.askAgain(request("describe_namespace", namespace));
    if (!found.get("exists").asBoolean()) {
      throw new NoSuchNamespaceException(namespace);
    }
    return texts(found.get("properties"));
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> properties) throws NamespaceAlreadyExistsException {
    ObjectNode request = request("create_namespace", namespace);
    properties.forEach(request.putObject("properties")::put);
    if (!Workers.ask(request).get("created").asBoolean()) {
      throw new NamespaceAlreadyExistsException(namespace);
    }
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw new UnsupportedOperationException("lance: the properties of a namespace cannot be changed");
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    JsonNode found = Workers.ask(request("drop_namespace", namespace));
    if (!found.get("exists").asBoolean()) {
      throw new NoSuchNamespaceException(namespace);
    }
    if (found.get("inside").asInt() > 0) {
      if (cascade) {
        throw new UnsupportedOperationException("lance: DROP ... CASCADE is not supported; drop the tables first");
      }
      throw new NonEmptyNamespaceException(namespace);
    }
    return true;
  }

  static Map<String, String> texts(JsonNode object) {
    Map<String, String> found = new HashMap<>();
    object.fieldNames().forEachRemaining(name -> found.put(name, object.get(name).asText()));
    return found;
  }
}
