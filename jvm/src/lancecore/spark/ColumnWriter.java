package lancecore.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.ipc.ReadChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.arrow.ArrowWriter;

/** One task's rows, gathered into Arrow's columns here and written as fragments by the worker. */
final class ColumnWriter implements DataWriter<InternalRow> {
  private static final int MOST_ROWS = 1 << 16;
  private static final int ROWS_BETWEEN_LOOKS = 1 << 10;
  private static final long MOST_BYTES = 64L << 20;

  private final Worker worker;
  private final BufferAllocator memory;
  private final VectorSchemaRoot root;
  private final ArrowWriter columns;
  private final ArrowStreamWriter stream;
  private int gathered;
  private long rows;

  private ColumnWriter(Worker worker, byte[] arrowSchema) throws IOException {
    this.worker = worker;
    this.memory = ColumnReader.MEMORY.newChildAllocator("lance write", 0, Long.MAX_VALUE);
    this.root = VectorSchemaRoot.create(MessageSerializer.deserializeSchema(arrowMessage(arrowSchema)), memory);
    this.columns = ArrowWriter.create(root);
    this.stream = new ArrowStreamWriter(root, null, worker.channel());
    try {
      stream.start();
    } catch (IOException error) {
      throw worker.noted(error);
    }
  }

  private static ReadChannel arrowMessage(byte[] message) {
    return new ReadChannel(
        Channels.newChannel(new ByteArrayInputStream(message)));
  }

  @Override
  public void write(InternalRow row) throws IOException {
    columns.write(row);
    gathered++;
    if (gathered == MOST_ROWS || gathered % ROWS_BETWEEN_LOOKS == 0 && size() > MOST_BYTES) {
      flush();
    }
  }

  /** Bytes gathered; Spark's own writer tells them from 4.0 on only. */
  private long size() {
    long bytes = 0;
    for (FieldVector column : root.getFieldVectors()) {
      column.setValueCount(gathered); // else its size is that of the last batch
      bytes += column.getBufferSizeFor(gathered);
    }
    return bytes;
  }

  private void flush() throws IOException {
    columns.finish();
    try {
      stream.writeBatch();
    } catch (IOException broken) {
      throw told(worker.noted(broken));
    }
    rows += gathered;
    gathered = 0;
    columns.reset();
  }

  /** A worker that fails closes its end; what it said before is the cause. */
  private RuntimeException told(IOException broken) throws IOException {
    try {
      return worker.failure(worker.readKind());
    } catch (IOException silent) {
      silent.addSuppressed(broken);
      throw silent;
    }
  }

  @Override
  public WriterCommitMessage commit() throws IOException {
    if (gathered > 0) {
      flush();
    }
    try {
      stream.end();
      worker.write(ByteBuffer.allocate(9).put((byte) 'K').putLong(rows).flip());
    } catch (IOException broken) {
      throw told(broken);
    }
    String result = worker.answer().get("result").asText();
    return new LanceWrite.Written(result);
  }

  @Override
  public void abort() {}

  @Override
  public void close() {
    root.close();
    memory.close();
    Workers.give(worker);
  }

  /** Makes the writers on executors. */
  static final class Factory implements DataWriterFactory {
    private static final long serialVersionUID = 1L;
    private final String writer;
    private final byte[] arrowSchema;

    Factory(String writer, byte[] arrowSchema) {
      this.writer = writer;
      this.arrowSchema = arrowSchema;
    }

    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
      ObjectNode request = Worker.JSON.createObjectNode();
      request.put("do", "write").put("writer", writer).put("partition", partition).put("task", Long.toString(task));
      try {
        Worker worker = Workers.take();
        try {
          worker.send(request);
          return new ColumnWriter(worker, arrowSchema);
        } catch (IOException | RuntimeException error) {
          Workers.give(worker);
          throw error;
        }
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }
}
