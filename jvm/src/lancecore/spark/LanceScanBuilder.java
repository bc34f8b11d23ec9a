package lancecore.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * What Spark asks of a scan. Filters are read by and given back: Spark applies them again, so that a difference between two
 * engines can only cost time. A limit is the most that a task reads, or, with an order, the first rows of each task, which Spark
 * sorts again. Of totals each task gives its own, for Spark to put together; how many rows there are, the manifest knows.
 */
final class LanceScanBuilder implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters, SupportsPushDownLimit,
    SupportsPushDownTopN, SupportsPushDownAggregates {
  private final StructType table;
  private final Map<String, String> options;
  private final String at;
  private StructType read;
  private Predicate[] pushed = new Predicate[0];
  private final ArrayNode filters = Worker.JSON.createArrayNode();
  private int limit = -1;
  private StructType counts;
  private Summary summary;

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
  public boolean pushTopN(SortOrder[] orders, int most) {
    if (counts != null || summary != null || isSearch()) {
      return false;
    }
    summary = Summary.top(table, orders, most);
    return summary != null;
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
      summary = isSearch() || !filters.isEmpty() ? null : Summary.totals(table, aggregation);
      return summary != null;
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
    return !has("filter") && !isSearch() && filters.isEmpty() && functions.length > 0 && aggregation.groupByExpressions().length == 0
        && Arrays.stream(functions).allMatch(function -> function instanceof CountStar);
  }

  private boolean isSearch() {
    return has("search");
  }

  private boolean has(String option) {
    return options.keySet().stream().anyMatch(option::equalsIgnoreCase);
  }

  @Override
  public Scan build() {
    if (counts != null) {
      return new CountScan(counts, options, at);
    }
    StructType given = summary == null || summary.schema == null ? read : summary.schema;
    return new LanceScan(given, options, at, filters, limit, summary);
  }
}
