package lancecore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/** A few rows that the driver has: no task is started for them. */
final class LocalRows implements LocalScan {
  private final StructType schema;
  private final InternalRow[] rows;

  LocalRows(StructType schema, StructType read, JsonNode rows) {
    this.schema = read;
    this.rows = new InternalRow[rows.size()];
    for (int row = 0; row < this.rows.length; row++) {
      Object[] values = new Object[read.length()];
      for (int column = 0; column < values.length; column++) {
        int at = schema.fieldIndex(read.fields()[column].name());
        values[column] = value(rows.get(row).get(at), schema.fields()[at].dataType());
      }
      this.rows[row] = new GenericInternalRow(values);
    }
  }

  private static Object value(JsonNode found, DataType type) {
    if (found == null || found.isNull()) {
      return null;
    }
    if (type instanceof ArrayType) {
      Object[] items = new Object[found.size()];
      Arrays.setAll(items, index -> value(found.get(index), ((ArrayType) type).elementType()));
      return new GenericArrayData(items);
    }
    if (type instanceof StringType) {
      return UTF8String.fromString(found.asText());
    }
    if (type instanceof LongType || type instanceof TimestampType) {
      return found.asLong();
    }
    throw new IllegalStateException("lance: no local value of type " + type);
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public InternalRow[] rows() {
    return rows.clone();
  }

  /** Such rows as a table. */
  static final class Rows extends Described implements SupportsRead {
    private final JsonNode rows;

    Rows(String name, StructType schema, JsonNode rows) {
      super(name, schema);
      this.rows = rows;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return EnumSet.of(TableCapability.BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return new Builder(schema, rows);
    }
  }

  private static final class Builder implements SupportsPushDownRequiredColumns {
    private final StructType schema;
    private final JsonNode rows;
    private StructType read;

    Builder(StructType schema, JsonNode rows) {
      this.schema = schema;
      this.rows = rows;
      this.read = schema;
    }

    @Override
    public void pruneColumns(StructType required) {
      read = required;
    }

    @Override
    public Scan build() {
      return new LocalRows(schema, read, rows);
    }
  }
}
