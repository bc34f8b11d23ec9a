package lancecore.spark;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The source `lance` in columns. What a table is, and what its options mean, is known in Python only. */
public class LanceProvider implements TableProvider {
  private CaseInsensitiveStringMap inferred;
  private Planner.Opened opened;

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    opened = Planner.open(options.asCaseSensitiveMap());
    inferred = options;
    return opened.schema;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    // The version that the schema was read from is the one that is scanned.
    boolean same = inferred != null && inferred.equals(new CaseInsensitiveStringMap(properties));
    return new LanceTable(schema, properties, same ? opened.at : null);
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  /** A table at one version, or, for a write, at whatever version it has. */
  private static final class LanceTable implements SupportsRead, SupportsWrite {
    private final StructType schema;
    private final Map<String, String> options;
    private final String at;

    LanceTable(StructType schema, Map<String, String> options, String at) {
      this.schema = schema;
      this.options = options;
      this.at = at;
    }

    @Override
    public String name() {
      return "lance";
    }

    @Override
    @SuppressWarnings("deprecation") // the other way to name columns came with Spark 3.4, and asks for this one
    public StructType schema() {
      return schema;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE,
          TableCapability.ACCEPT_ANY_SCHEMA);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
      return new LanceScanBuilder(schema, options, at);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return new LanceWrite.Builder(options, info.schema());
    }
  }
}
