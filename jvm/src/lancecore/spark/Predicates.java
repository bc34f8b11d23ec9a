package lancecore.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;

/**
 * Spark's predicates as JSON for the planner, which decides which of them mean the same in a Lance scan.
 *
 * <pre>  {"op": "=", "column": ["s", "k"], "values": [{"type": "int", "value": 3}]}    {"op": "AND", "of": [...]}</pre>
 */
final class Predicates {
  private static final Set<String> COMPARISONS = Set.of("=", "<>", ">", ">=", "<", "<=", "IN", "STARTS_WITH");
  private static final Set<String> TESTS = Set.of("IS_NULL", "IS_NOT_NULL");
  private static final Set<String> JOINS = Set.of("AND", "OR", "NOT");

  /** A column and the values that it is compared with; the planner leaves longer lists to Spark. */
  static final int MOST_VALUES = 1001;

  private Predicates() {}

  /** Whether values of a type can be described. */
  static boolean compares(DataType type) {
    return type instanceof BooleanType || isInteger(type) || type instanceof DateType || isText(type);
  }

  private static boolean isInteger(DataType type) {
    return type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType || type instanceof LongType;
  }

  private static boolean isText(DataType type) {
    return type instanceof StringType && type.typeName().equals("string");
  }

  /** All of some predicates, or null where one of them cannot be described. */
  static ArrayNode describeAll(Predicate[] predicates) {
    ArrayNode found = Worker.JSON.createArrayNode();
    for (Predicate predicate : predicates) {
      ObjectNode described = predicate.name().equals("ALWAYS_TRUE") ? Worker.JSON.createObjectNode().put("op", "TRUE")
          : describe(predicate);
      if (described == null) {
        return null;
      }
      found.add(described);
    }
    return found;
  }

  /** Null where a predicate has something that is neither a column, a plain value nor one of the names above. */
  static ObjectNode describe(Predicate predicate) {
    Expression[] children = predicate.children();
    ObjectNode found = Worker.JSON.createObjectNode().put("op", predicate.name());
    if (JOINS.contains(predicate.name())) {
      ArrayNode parts = found.putArray("of");
      for (Expression child : children) {
        ObjectNode part = child instanceof Predicate ? describe((Predicate) child) : null;
        if (part == null) {
          return null;
        }
        parts.add(part);
      }
      return found;
    }
    boolean compares = COMPARISONS.contains(predicate.name());
    if (!(compares || TESTS.contains(predicate.name())) || children.length == 0 || !(children[0] instanceof NamedReference)) {
      return null;
    }
    ArrayNode column = found.putArray("column");
    for (String part : ((NamedReference) children[0]).fieldNames()) {
      column.add(part);
    }
    ArrayNode values = found.putArray("values");
    for (int index = 1; index < children.length; index++) {
      if (!(children[index] instanceof Literal) || !add(values, (Literal<?>) children[index])) {
        return null;
      }
    }
    return found;
  }

  private static boolean add(ArrayNode values, Literal<?> literal) {
    DataType type = literal.dataType();
    Object value = literal.value();
    if (value == null) {
      return false;
    }
    if (type instanceof BooleanType) {
      values.addObject().put("type", "boolean").put("value", (Boolean) value);
    } else if (isInteger(type)) {
      values.addObject().put("type", "integer").put("value", ((Number) value).longValue());
    } else if (type instanceof DateType) {
      values.addObject().put("type", "date").put("value", ((Number) value).intValue());
    } else if (isText(type)) {
      values.addObject().put("type", "string").put("value", value.toString());
    } else {
      return false;
    }
    return true;
  }
}
