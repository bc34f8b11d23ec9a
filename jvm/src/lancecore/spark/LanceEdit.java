package lancecore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Base64;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * An UPDATE, a MERGE or a DELETE that Spark computes: rows go by their addresses at the version that is read, changed rows are
 * written again and keep their ids, and all of it is one transaction.
 */
final class LanceEdit implements SupportsDelta {
  private final LanceTable.Named table;
  private final Command command;

  LanceEdit(LanceTable.Named table, Command command) {
    this.table = table;
    this.command = command;
  }

  @Override
  public Command command() {
    return command;
  }

  @Override
  public String description() {
    return "lance " + command;
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
    return table.newScanBuilder(more);
  }

  @Override
  public NamedReference[] rowId() {
    return new NamedReference[] {Expressions.column(LanceTable.SystemColumn.ADDRESS)};
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    StructType rows = info.schema().isEmpty() ? table.schema : info.schema(); // a DELETE brings no rows
    return new DeltaWriteBuilder() {
      @Override
      public DeltaWrite build() {
        return new DeltaWrite() {
          @Override
          public DeltaBatchWrite toBatch() {
            return new Changes(Planner.beginEdit(table.options, table.at, rows, command));
          }

          @Override
          public String description() {
            return LanceEdit.this.description();
          }
        };
      }
    };
  }

  private static final class Changes implements DeltaBatchWrite {
    private final String writer;
    private final Factory factory;

    Changes(JsonNode begun) {
      this.writer = begun.get("writer").asText();
      ColumnWriter.Factory rows = columns(begun.get("arrow"));
      JsonNode addressed = begun.get("addressed_arrow");
      this.factory = new Factory(rows, addressed == null ? null : columns(addressed));
    }

    private ColumnWriter.Factory columns(JsonNode arrowSchema) {
      return new ColumnWriter.Factory(writer, Base64.getDecoder().decode(arrowSchema.asText()));
    }

    @Override
    public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      return factory;
    }

    /** Of tasks that ran twice Spark passes one result on, and only what it names is staged. */
    @Override
    public boolean useCommitCoordinator() {
      return false;
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      Planner.commit(writer, LanceWrite.results(messages));
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
      Planner.abort(writer);
    }
  }

  private static final class Factory implements DeltaWriterFactory {
    private static final long serialVersionUID = 1L;
    private final ColumnWriter.Factory rows;
    private final ColumnWriter.Factory addressed;

    /** `addressed`: for rows that moved, with the address that each had; null where nobody wants it. */
    Factory(ColumnWriter.Factory rows, ColumnWriter.Factory addressed) {
      this.rows = rows;
      this.addressed = addressed;
    }

    @Override
    public DeltaWriter<InternalRow> createWriter(int partition, long task) {
      return new Writer(rows, addressed, partition, task);
    }
  }

  /** One task: rows that moved and rows that are new go to files of their own, whose first rows take the ids of those. */
  private static final class Writer implements DeltaWriter<InternalRow> {
    private static final int NEW = 1_000_000; // partition numbers of new rows begin here
    private final ColumnWriter.Factory rows;
    private final ColumnWriter.Factory addressed;
    private final GenericInternalRow address = new GenericInternalRow(1);
    private final JoinedRow joined = new JoinedRow();
    private final int partition;
    private final long task;
    private final Addresses deleted = new Addresses();
    private final Addresses moved = new Addresses();
    private ColumnWriter movedRows;
    private ColumnWriter newRows;

    Writer(ColumnWriter.Factory rows, ColumnWriter.Factory addressed, int partition, long task) {
      this.rows = rows;
      this.addressed = addressed;
      this.partition = partition;
      this.task = task;
    }

    @Override
    public void delete(InternalRow metadata, InternalRow id) throws IOException {
      deleted.add(id.getLong(0));
    }

    @Override
    public void update(InternalRow metadata, InternalRow id, InternalRow row) throws IOException {
      moved.add(id.getLong(0));
      if (movedRows == null) {
        movedRows = (ColumnWriter) (addressed == null ? rows : addressed).createWriter(partition, task);
      }
      if (addressed == null) {
        movedRows.write(row);
      } else {
        address.setLong(0, id.getLong(0));
        movedRows.write(joined.apply(row, address));
      }
    }

    @Override
    public void insert(InternalRow row) throws IOException {
      if (newRows == null) {
        newRows = (ColumnWriter) rows.createWriter(NEW + partition, task);
      }
      newRows.write(row);
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      ObjectNode told = Worker.JSON.createObjectNode();
      told.put("deleted", deleted.packed()).put("moved", moved.packed());
      if (movedRows != null) {
        told.put("moved_rows", movedRows.commit().toString());
      }
      if (newRows != null) {
        told.put("new_rows", newRows.commit().toString());
      }
      return new LanceWrite.Written(told.toString());
    }

    @Override
    public void abort() {}

    @Override
    public void close() {
      if (movedRows != null) {
        movedRows.close();
      }
      if (newRows != null) {
        newRows.close();
      }
    }
  }

  /** Row addresses in the order in which they came: differences of 8 bytes, deflated, so that a run takes next to nothing. */
  private static final class Addresses {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final Deflater deflater = new Deflater(1);
    private final DeflaterOutputStream packed = new DeflaterOutputStream(bytes, deflater, 1 << 16);
    private final ByteBuffer one = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private long last;

    void add(long address) throws IOException {
      packed.write(one.putLong(0, address - last).array());
      last = address;
    }

    String packed() throws IOException {
      packed.close();
      deflater.end();
      return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
  }
}
