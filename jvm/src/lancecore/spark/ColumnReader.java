package lancecore.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The batches of one task: Arrow's buffers from the worker, wrapped as Spark's columns, never copied into rows. */
final class ColumnReader implements PartitionReader<ColumnarBatch> {
  static final BufferAllocator MEMORY = new RootAllocator();
  /** What groups and joins reads few columns; making rows of many is a fifth slower with texts that are on the heap. */
  private static final int MOST_WITH_KEPT_TEXTS = 4;

  private final Worker worker;
  private final BufferAllocator memory;
  private final ArrowStreamReader stream;
  private Column[] columns;
  private ColumnarBatch batch;
  private long rows;
  private boolean ended;

  private ColumnReader(Worker worker) {
    this.worker = worker;
    this.memory = MEMORY.newChildAllocator("lance read", 0, Long.MAX_VALUE);
    this.stream = new ArrowStreamReader(worker.channel(), memory);
  }

  static ColumnReader open(String reader, String group, int limit) throws IOException {
    ObjectNode request = Worker.JSON.createObjectNode();
    request.put("do", "read").put("reader", reader).put("group", group).put("limit", limit);
    Worker worker = Workers.take();
    try {
      worker.send(request);
      byte kind = worker.readKind();
      if (kind == 'A') {
        return new ColumnReader(worker);
      }
      throw worker.failure(kind);
    } catch (IOException | RuntimeException error) {
      Workers.give(worker);
      throw error;
    }
  }

  @Override
  public boolean next() throws IOException {
    if (ended) {
      return false;
    }
    if (loadNext()) {
      VectorSchemaRoot root = stream.getVectorSchemaRoot();
      if (batch == null) {
        boolean keepsTexts = root.getFieldVectors().size() <= MOST_WITH_KEPT_TEXTS;
        columns = root.getFieldVectors().stream().map(vector -> Column.of(vector, keepsTexts)).toArray(Column[]::new);
        batch = new ColumnarBatch(columns);
      }
      for (Column column : columns) {
        column.turn();
      }
      batch.setNumRows(root.getRowCount());
      rows += root.getRowCount();
      return true;
    }
    // Arrow takes the end of a broken connection for the end of a stream; only the trailer says that all rows came.
    long sent = worker.trailer();
    if (sent != rows) {
      throw new IOException("lance: the Python worker sent " + sent + " rows, and " + rows + " arrived");
    }
    ended = true;
    return false;
  }

  private boolean loadNext() throws IOException {
    try {
      return stream.loadNextBatch();
    } catch (IOException error) {
      throw worker.noted(error);
    }
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  @Override
  public void close() throws IOException {
    stream.close(false);
    memory.close();
    Workers.give(worker);
  }

  /** Makes the readers on executors. */
  static final class Factory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1L;
    private final String reader;
    private final int limit;

    Factory(String reader, int limit) {
      this.reader = reader;
      this.limit = limit;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new UnsupportedOperationException("lance is read in columns");
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      try {
        LanceScan.Group group = (LanceScan.Group) partition;
        return open(group.reader == null ? reader : group.reader, group.words, limit);
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }
}
