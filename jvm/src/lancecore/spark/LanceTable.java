package lancecore.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table at one version, or, for a write, at whatever version it has. */
class LanceTable extends Described implements SupportsRead, SupportsWrite, SupportsMetadataColumns {
  final Map<String, String> options;
  final String at;

  LanceTable(String name, StructType schema, Map<String, String> options, String at) {
    super(name, schema);
    this.options = options;
    this.at = at;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.STREAMING_WRITE,
        TableCapability.TRUNCATE, TableCapability.ACCEPT_ANY_SCHEMA);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return new MetadataColumn[] {new SystemColumn("_rowid"), new SystemColumn(SystemColumn.ADDRESS),
        new SystemColumn("_fragid")};
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
    return new LanceScanBuilder(schema, options, at);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new LanceWrite.Builder(options, info, () -> null);
  }

  /** The table of a catalog: its columns are what SQL resolves names and types against, and SQL may change its rows. */
  static final class Named extends LanceTable implements SupportsDeleteV2, SupportsRowLevelOperations {
    private final Map<String, String> properties;
    private volatile boolean isRead;

    Named(String name, StructType schema, Map<String, String> options, String at, Map<String, String> properties) {
      super(name, schema, options, at);
      this.properties = properties;
    }

    @Override
    public Map<String, String> properties() {
      return properties;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.STREAMING_WRITE,
          TableCapability.TRUNCATE, TableCapability.OVERWRITE_BY_FILTER);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
      isRead = true;
      return super.newScanBuilder(more);
    }

    /** A statement that adds rows by what the table has, such as a MERGE that only inserts, is right for that version only. */
    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return new LanceWrite.Builder(options, info, () -> isRead ? at : null);
    }

    @Override
    public boolean canDeleteWhere(Predicate[] predicates) {
      ArrayNode described = Predicates.describeAll(predicates);
      return described != null && Planner.isExact(options, at, described);
    }

    @Override
    public void deleteWhere(Predicate[] predicates) {
      Planner.delete(options, at, Predicates.describeAll(predicates));
    }

    @Override
    public boolean truncateTable() {
      Planner.delete(options, at, Worker.JSON.createArrayNode());
      return true;
    }

    @Override
    public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
      return () -> new LanceEdit(this, info.command());
    }
  }

  /** A column that every row has and no file holds. */
  static final class SystemColumn implements MetadataColumn {
    static final String ADDRESS = "_rowaddr";
    private final String name;

    SystemColumn(String name) {
      this.name = name;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public DataType dataType() {
      return name.equals("_fragid") ? DataTypes.IntegerType : DataTypes.LongType;
    }

    @Override
    public boolean isNullable() {
      return false;
    }
  }
}
