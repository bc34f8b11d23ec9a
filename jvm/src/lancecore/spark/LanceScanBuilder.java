package lancecore.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * What Spark asks of a scan. Filters are read by and given back: Spark applies them again, so that a difference between two
 * engines can only cost time. A limit is the most that a task reads.
 */
final class LanceScanBuilder
    implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters, SupportsPushDownLimit, SupportsPushDownAggregates {
  private final StructType table;
  private final Map<String, String> options;
  private final String at;
  private StructType read;
  private Predicate[] pushed = new Predicate[0];
  private final ArrayNode filters = Worker.JSON.createArrayNode();
  private int limit = -1;
  private StructType counts;

  LanceScanBuilder(StructType table, Map<String, String> options, String at) {
    this.table = table;
    this.options = options;
    this.at = at;
    this.read = table;
  }

  @Override
  public void pruneColumns(StructType required) {
    read = required;
  }

  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    List<Predicate> taken = new ArrayList<>();
    for (Predicate predicate : predicates) {
      ObjectNode described = Predicates.describe(predicate);
      if (described != null) {
        filters.add(described);
        taken.add(predicate);
      }
    }
    pushed = taken.toArray(new Predicate[0]);
    return predicates;
  }

  @Override
  public Predicate[] pushedPredicates() {
    return pushed.clone();
  }

  @Override
  public boolean pushLimit(int most) {
    limit = most;
    return true;
  }

  @Override
  public boolean isPartiallyPushed() {
    return true;
  }

  @Override
  public boolean supportCompletePushDown(Aggregation aggregation) {
    return isCount(aggregation);
  }

  @Override
  public boolean pushAggregation(Aggregation aggregation) {
    if (!isCount(aggregation)) {
      return false;
    }
    StructType found = new StructType();
    for (int index = 0; index < aggregation.aggregateExpressions().length; index++) {
      found = found.add("count_" + index, DataTypes.LongType, false);
    }
    counts = found;
    return true;
  }

  /** Whether the manifest knows the answer: rows of the whole table, which no filter restricts. */
  private boolean isCount(Aggregation aggregation) {
    AggregateFunc[] functions = aggregation.aggregateExpressions();
    boolean filtered = options.keySet().stream().anyMatch(name -> name.equalsIgnoreCase("filter") || name.equals("search"));
    return !filtered && filters.isEmpty() && functions.length > 0 && aggregation.groupByExpressions().length == 0
        && Arrays.stream(functions).allMatch(function -> function instanceof CountStar);
  }

  @Override
  public Scan build() {
    return counts == null ? new LanceScan(read, options, at, filters, limit) : new CountScan(counts, options, at);
  }
}
