package lancecore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Some columns of one version. Planned once, when Spark first wants to know its size or its parts; again for what the other side
 * of a join turns out to hold, which a query knows only while it runs.
 */
final class LanceScan
    implements Scan, Batch, SupportsReportStatistics, SupportsReportPartitioning, SupportsRuntimeV2Filtering {
  private static final String CLUSTERS = "spark.sql.sources.v2.bucketing.enabled";
  private static final String IN_PARTS = "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled";

  private final StructType read;
  private final Map<String, String> options;
  private final String at;
  private final ArrayNode filters;
  private final int limit;
  /** Null where the rows themselves are read. */
  private final Summary summary;
  private Planner.Plan planned;
  private final ThreadLocal<ArrayNode> found = new ThreadLocal<>();

  LanceScan(StructType read, Map<String, String> options, String at, ArrayNode filters, int limit, Summary summary) {
    this.read = read;
    this.options = options;
    this.at = at;
    this.filters = filters;
    this.limit = limit;
    this.summary = summary;
  }

  private synchronized Planner.Plan plan() {
    if (planned == null) {
      planned = plan(filters, mayCluster(), null);
    }
    return planned;
  }

  private Planner.Plan plan(ArrayNode all, boolean mayCluster, String clustered) {
    int parallelism = SparkSession.active().sparkContext().defaultParallelism();
    return Planner.plan(options, at, read, all, limit, summary, parallelism, mayCluster, clustered);
  }

  /**
   * Whether Spark would use that tasks have one value of a column each. Not where it may also split a value between tasks of a
   * join: releases up to 4.2.0 then take the split rows for grouped ones and repeat them (SPARK-53074, 55848 and 58996).
   */
  private boolean mayCluster() {
    return summary == null && limit < 0 && !changesRows() && isSet(CLUSTERS) && !isSet(IN_PARTS);
  }

  private static boolean isSet(String setting) {
    return Boolean.parseBoolean(SparkSession.active().conf().get(setting));
  }

  private boolean changesRows() {
    return Arrays.asList(read.fieldNames()).contains(LanceTable.SystemColumn.ADDRESS);
  }

  /** By a column that each task has one value of, where the planner knows one. */
  @Override
  public Partitioning outputPartitioning() {
    String column = mayCluster() ? plan().clustered : null;
    if (column == null) {
      return new UnknownPartitioning(0);
    }
    Expression[] keys = {Expressions.identity(quoted(column))};
    return new KeyGroupedPartitioning(keys, plan().groups.length);
  }

  private static String quoted(String column) {
    return "`" + column.replace("`", "``") + "`";
  }

  @Override
  public StructType readSchema() {
    return read;
  }

  @Override
  public String description() {
    return "lance (" + String.join(", ", read.fieldNames()) + "), " + filters.size() + " filters"
        + (limit < 0 ? "" : ", limit " + limit) + (summary == null ? "" : ", " + summary.text);
  }

  /** The batch that was meant when this thread has just told what else rows must satisfy, else of all rows. */
  @Override
  public Batch toBatch() {
    ArrayNode also = found.get();
    found.remove();
    return also == null ? this : new Narrowed(also);
  }

  /**
   * Columns whose values are compared here as Spark compares them. None of the rows that a statement changes: Spark would look
   * for these rows twice, to tell us their very addresses. None where the first rows are wanted: they would be others.
   */
  @Override
  public NamedReference[] filterAttributes() {
    if (summary != null || changesRows()) {
      return new NamedReference[0];
    }
    return Arrays.stream(read.fields()).filter(field -> Predicates.compares(field.dataType()))
        .map(field -> Expressions.column(quoted(field.name()))).toArray(NamedReference[]::new);
  }

  /** Spark asks for the batch of it next, in this thread; another plan that has this scan is not meant. */
  @Override
  public void filter(Predicate[] predicates) {
    ArrayNode also = Worker.JSON.createArrayNode();
    for (Predicate predicate : predicates) {
      ObjectNode described = predicate.children().length <= Predicates.MOST_VALUES ? Predicates.describe(predicate) : null;
      if (described != null) {
        also.add(described);
      }
    }
    if (also.isEmpty()) {
      found.remove();
    } else {
      found.set(also);
    }
  }

  @Override
  public Statistics estimateStatistics() {
    Planner.Plan known = plan();
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        return OptionalLong.of(known.bytes);
      }

      @Override
      public OptionalLong numRows() {
        return OptionalLong.of(known.rows);
      }
    };
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return groups(plan(), null);
  }

  private InputPartition[] groups(Planner.Plan known, String reader) {
    InputPartition[] found = new InputPartition[known.groups.length];
    DataType type = known.clustered == null ? null : read.apply(known.clustered).dataType();
    for (int index = 0; index < found.length; index++) {
      String words = known.groups[index];
      found[index] = type == null ? new Group(words, reader) : new KeyedGroup(words, reader, known.keys.get(index), type);
    }
    return found;
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new ColumnReader.Factory(plan().reader, limit);
  }

  /** Equal scans of a query are read once: Spark compares them to find out. */
  @Override
  public boolean equals(Object other) {
    return other instanceof LanceScan && identity().equals(((LanceScan) other).identity());
  }

  @Override
  public int hashCode() {
    return identity().hashCode();
  }

  private List<Object> identity() {
    return Arrays.asList(read, options, at, filters, limit, summary);
  }

  /** The rows that also satisfy what a query has found out; its tasks have a reader of their own. */
  private final class Narrowed implements Batch {
    private final ArrayNode all = filters.deepCopy();

    Narrowed(ArrayNode also) {
      all.addAll(also);
    }

    @Override
    public InputPartition[] planInputPartitions() {
      String told = plan().clustered; // Spark holds us to the column that it knows
      Planner.Plan known = plan(all, told != null, told);
      // Where an index has gone in between, all rows of the groups that Spark knows are right as well.
      return told != null && known.clustered == null ? LanceScan.this.planInputPartitions() : groups(known, known.reader);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return LanceScan.this.createReaderFactory();
    }
  }

  /** What one task reads, in the planner's words. Never printed: it may hold what opens a store. */
  static class Group implements InputPartition {
    private static final long serialVersionUID = 1L;
    final String words;
    /** Null where it is that of all tasks. */
    final String reader;

    Group(String words, String reader) {
      this.words = words;
      this.reader = reader;
    }
  }

  /** The same of rows that all have one value in the column that the table is clustered by. */
  private static final class KeyedGroup extends Group implements HasPartitionKey {
    private static final long serialVersionUID = 1L;
    private final InternalRow key;

    KeyedGroup(String words, String reader, JsonNode value, DataType type) {
      super(words, reader);
      this.key = new GenericInternalRow(new Object[] {inside(value, type)});
    }

    @Override
    public InternalRow partitionKey() {
      return key;
    }

    /** As Spark keeps it in rows. */
    private static Object inside(JsonNode value, DataType type) {
      if (type instanceof BooleanType) {
        return value.asBoolean();
      }
      if (type instanceof ByteType) {
        return (byte) value.asInt();
      }
      if (type instanceof ShortType) {
        return (short) value.asInt();
      }
      if (type instanceof IntegerType || type instanceof DateType) {
        return value.asInt();
      }
      return type instanceof StringType ? UTF8String.fromString(value.asText()) : (Object) value.asLong();
    }
  }
}
