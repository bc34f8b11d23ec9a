package lancecore.spark;

import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.types.StructType;

/** What every table of ours tells of itself: its name and its columns. */
abstract class Described implements Table {
  final String name;
  final StructType schema;

  Described(String name, StructType schema) {
    this.name = name;
    this.schema = schema;
  }

  @Override
  public final String name() {
    return name;
  }

  @Override
  @SuppressWarnings("deprecation") // the other way to name columns came with Spark 3.4, and asks for this one
  public final StructType schema() {
    return schema;
  }
}
