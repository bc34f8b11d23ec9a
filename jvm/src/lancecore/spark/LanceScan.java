package lancecore.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;

/** Some columns of one version. Planned once, when Spark first wants to know its size or its parts. */
final class LanceScan implements Scan, Batch, SupportsReportStatistics {
  private final StructType read;
  private final Map<String, String> options;
  private final String at;
  private final ArrayNode filters;
  private final int limit;
  private Planner.Plan planned;

  LanceScan(StructType read, Map<String, String> options, String at, ArrayNode filters, int limit) {
    this.read = read;
    this.options = options;
    this.at = at;
    this.filters = filters;
    this.limit = limit;
  }

  private synchronized Planner.Plan plan() {
    if (planned == null) {
      int parallelism = SparkSession.active().sparkContext().defaultParallelism();
      planned = Planner.plan(options, at, read, filters, limit, parallelism);
    }
    return planned;
  }

  @Override
  public StructType readSchema() {
    return read;
  }

  @Override
  public String description() {
    return "lance (" + String.join(", ", read.fieldNames()) + "), " + filters.size() + " filters"
        + (limit < 0 ? "" : ", limit " + limit);
  }

  @Override
  public Batch toBatch() {
    return this;
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
    Planner.Plan known = plan();
    InputPartition[] found = new InputPartition[known.groups.length];
    for (int index = 0; index < found.length; index++) {
      found[index] = new Group(known.groups[index]);
    }
    return found;
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new ColumnReader.Factory(plan().reader, limit);
  }

  /** What one task reads, in the planner's words. Never printed: it may hold what opens a store. */
  static final class Group implements InputPartition {
    private static final long serialVersionUID = 1L;
    final String words;

    Group(String words) {
      this.words = words;
    }
  }
}
