package lancecore.spark;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
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
    return new LanceTable("lance", schema, properties, same ? opened.at : null);
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }
}
