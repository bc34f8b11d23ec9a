package lancecore.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * What each task makes of its rows before Spark sees them, as JSON for the planner.
 *
 * <pre>
 *   top      {"columns": ..., "most": 10, "order": [{"column": "a", "descending": true, "nulls_first": false}, ...]}
 *   totals   {"columns": ..., "of": [{"function": "max", "column": "a"}, {"function": "count"}]}
 * </pre>
 *
 * Only of plain columns whose values a worker orders exactly as Spark does.
 */
final class Summary {
  /** More rows than these are read and sorted as any others. */
  private static final int MOST_ROWS = 1 << 16;

  final String name;
  final ObjectNode described = Worker.JSON.createObjectNode();
  final String text;
  /** Of its rows; null where these have the columns that are read. */
  final StructType schema;

  private Summary(String name, String text, StructType columns, StructType schema) {
    this.name = name;
    this.text = text;
    this.schema = schema;
    described.put("columns", columns.json());
  }

  /** The first rows of an order, or null where a worker cannot tell which those are. */
  static Summary top(StructType table, SortOrder[] orders, int most) {
    if (most > MOST_ROWS) {
      return null;
    }
    StructType columns = new StructType();
    ArrayNode described = Worker.JSON.createArrayNode();
    List<String> words = new ArrayList<>();
    for (SortOrder order : orders) {
      StructField column = ordered(table, order.expression());
      if (column == null) {
        return null;
      }
      columns = with(columns, column);
      boolean descending = order.direction() == SortDirection.DESCENDING;
      boolean nullsFirst = order.nullOrdering() == NullOrdering.NULLS_FIRST;
      described.addObject().put("column", column.name()).put("descending", descending).put("nulls_first", nullsFirst);
      words.add(column.name() + " " + order.direction() + " " + order.nullOrdering());
    }
    Summary found = new Summary("top", "first " + most + " by " + String.join(", ", words), columns, null);
    found.described.put("most", most).set("order", described);
    return found;
  }

  /** Counts, least and greatest values of all rows, or null where others are wanted too. */
  static Summary totals(StructType table, Aggregation aggregation) {
    if (aggregation.groupByExpressions().length > 0) {
      return null;
    }
    StructType columns = new StructType();
    StructType schema = new StructType();
    ArrayNode described = Worker.JSON.createArrayNode();
    List<String> words = new ArrayList<>();
    for (AggregateFunc function : aggregation.aggregateExpressions()) {
      String name = name(function);
      StructField column = name == null || function instanceof CountStar ? null : ordered(table, function.children()[0]);
      if (name == null || column == null && !(function instanceof CountStar)) {
        return null;
      }
      ObjectNode total = described.addObject().put("function", name);
      DataType type = DataTypes.LongType;
      String word = name + "(*)";
      if (column != null) {
        columns = with(columns, column);
        total.put("column", column.name());
        type = name.equals("count") ? type : column.dataType();
        word = name + "(" + column.name() + ")";
      }
      schema = schema.add(name + "_" + schema.length(), type, !name.equals("count"));
      words.add(word);
    }
    Summary found = new Summary("totals", "each task's " + String.join(", ", words), columns, schema);
    found.described.set("of", described);
    return found;
  }

  private static String name(AggregateFunc function) {
    if (function instanceof CountStar || function instanceof Count && !((Count) function).isDistinct()) {
      return "count";
    }
    return function instanceof Min ? "min" : function instanceof Max ? "max" : null;
  }

  private static StructType with(StructType columns, StructField column) {
    return Arrays.asList(columns.fieldNames()).contains(column.name()) ? columns : columns.add(column);
  }

  /** The column that an expression is, if it is one and of a type whose values have the same order here as in Spark. */
  private static StructField ordered(StructType table, Expression expression) {
    if (!(expression instanceof NamedReference) || ((NamedReference) expression).fieldNames().length != 1) {
      return null;
    }
    String name = ((NamedReference) expression).fieldNames()[0];
    for (StructField field : table.fields()) {
      if (field.name().equals(name)) {
        return isOrdered(field.dataType()) ? field : null;
      }
    }
    return null;
  }

  private static boolean isOrdered(DataType type) {
    return Predicates.compares(type) || type instanceof FloatType || type instanceof DoubleType || type instanceof DecimalType
        || type instanceof BinaryType || type instanceof TimestampType || type instanceof TimestampNTZType;
  }
}
