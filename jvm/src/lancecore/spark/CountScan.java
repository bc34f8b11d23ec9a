package lancecore.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/** count(*) of a whole version, which its manifest knows. */
final class CountScan implements Scan, Batch {
  private final StructType counts;
  private final Map<String, String> options;
  private final String at;

  CountScan(StructType counts, Map<String, String> options, String at) {
    this.counts = counts;
    this.options = options;
    this.at = at;
  }

  @Override
  public StructType readSchema() {
    return counts;
  }

  @Override
  public String description() {
    return "lance count(*) of the manifest";
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return new InputPartition[] {new Count(Planner.count(options, at))};
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new Factory(counts.length());
  }

  private static final class Count implements InputPartition {
    private static final long serialVersionUID = 1L;
    final long rows;

    Count(long rows) {
      this.rows = rows;
    }
  }

  private static final class Factory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1L;
    private final int columns;

    Factory(int columns) {
      this.columns = columns;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      Object[] values = new Object[columns];
      java.util.Arrays.fill(values, ((Count) partition).rows);
      return new OneRow(new GenericInternalRow(values));
    }
  }

  private static final class OneRow implements PartitionReader<InternalRow> {
    private final InternalRow row;
    private boolean given;

    OneRow(InternalRow row) {
      this.row = row;
    }

    @Override
    public boolean next() {
      boolean first = !given;
      given = true;
      return first;
    }

    @Override
    public InternalRow get() {
      return row;
    }

    @Override
    public void close() {}
  }
}
