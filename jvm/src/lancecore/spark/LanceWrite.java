package lancecore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.types.StructType;

/** One write of a DataFrame: begun, staged and committed by Python on the driver, its rows written by workers. */
final class LanceWrite implements BatchWrite {
  private final StructType schema;
  private final String writer;
  private final byte[] arrowSchema;

  private LanceWrite(StructType schema, JsonNode begun) {
    this.schema = schema;
    this.writer = begun.get("writer").asText();
    this.arrowSchema = Base64.getDecoder().decode(begun.get("arrow").asText());
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return new ColumnWriter.Factory(writer, arrowSchema);
  }

  /** Of tasks that ran twice Spark passes one result on, and only what it names is staged. */
  @Override
  public boolean useCommitCoordinator() {
    return false;
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    Planner.commit(writer, results(messages));
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {
    Planner.abort(writer);
  }

  static List<String> results(WriterCommitMessage[] messages) {
    List<String> found = new ArrayList<>();
    for (WriterCommitMessage message : messages) {
      if (message != null) {
        found.add(message.toString());
      }
    }
    return found;
  }

  @Override
  public String toString() {
    return "lance write of " + schema.length() + " columns";
  }

  /**
   * What a task tells the driver, in Python's words. They are read by `toString`: where somebody added the jar to a session by
   * `ADD JAR`, the class that arrives is of another loader than this one, and no cast between the two holds.
   */
  static final class Written implements WriterCommitMessage {
    private static final long serialVersionUID = 1L;
    private final String result;

    Written(String result) {
      this.result = result;
    }

    @Override
    public String toString() {
      return result;
    }
  }

  /** Append, overwrite where Spark truncates first, or the rows of a filter anew. */
  static final class Builder implements WriteBuilder, SupportsOverwriteV2 {
    private final Map<String, String> options;
    private final StructType schema;
    private final String query;
    private final Supplier<String> read;
    private boolean overwrite;
    private ArrayNode where;

    /** `read`: the version that the rows depend on, null where they depend on none. */
    Builder(Map<String, String> options, LogicalWriteInfo info, Supplier<String> read) {
      this.read = read;
      this.options = options;
      this.schema = info.schema();
      this.query = info.queryId();
    }

    @Override
    public WriteBuilder truncate() {
      overwrite = true;
      return this;
    }

    @Override
    public boolean canOverwrite(Predicate[] predicates) {
      ArrayNode described = Predicates.describeAll(predicates);
      return described != null && Planner.isExact(options, null, described);
    }

    @Override
    public WriteBuilder overwrite(Predicate[] predicates) {
      where = Predicates.describeAll(predicates);
      return this;
    }

    @Override
    public Write build() {
      return new Write() {
        @Override
        public BatchWrite toBatch() {
          return new LanceWrite(schema, Planner.begin(options, schema, overwrite, where, read.get()));
        }

        @Override
        public StreamingWrite toStreaming() {
          return new Stream(options, schema, overwrite, query);
        }

        @Override
        public String description() {
          return overwrite ? "lance overwrite" : where == null ? "lance append" : "lance replace where";
        }
      };
    }
  }

  /**
   * One batch of a stream, of which Spark makes an object each. The query's id, which lives in the checkpoint, and the batch's
   * number are the identity of the write: a batch that is run again after it was committed adds nothing.
   */
  private static final class Stream implements StreamingWrite {
    private static final String BATCH = "streaming.sql.batchId";
    private final Map<String, String> options;
    private final StructType schema;
    private final boolean overwrite;
    private final String query;
    private long batch = -1;
    private String writer;

    Stream(Map<String, String> options, StructType schema, boolean overwrite, String query) {
      this.options = options;
      this.schema = schema;
      this.overwrite = overwrite;
      this.query = query;
    }

    @Override
    public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
      String number = SparkSession.active().sparkContext().getLocalProperty(BATCH);
      if (number == null) {
        throw new UnsupportedOperationException("lance: a stream is written in micro-batches; Trigger.Continuous is not supported");
      }
      batch = Long.parseLong(number);
      JsonNode begun = Planner.beginBatch(options, schema, overwrite, query, batch);
      writer = begun.get("writer").asText();
      return new StreamFactory(new ColumnWriter.Factory(writer, Base64.getDecoder().decode(begun.get("arrow").asText())), batch);
    }

    @Override
    public boolean useCommitCoordinator() {
      return false;
    }

    @Override
    public void commit(long epoch, WriterCommitMessage[] messages) {
      if (epoch != batch) {
        throw new IllegalStateException("lance: batch " + batch + " was begun, and " + epoch + " is committed");
      }
      Planner.commit(writer, results(messages));
    }

    @Override
    public void abort(long epoch, WriterCommitMessage[] messages) {
      if (writer != null) {
        Planner.abort(writer);
      }
    }
  }

  private static final class StreamFactory implements StreamingDataWriterFactory {
    private static final long serialVersionUID = 1L;
    private final ColumnWriter.Factory factory;
    private final long batch;

    StreamFactory(ColumnWriter.Factory factory, long batch) {
      this.factory = factory;
      this.batch = batch;
    }

    @Override
    public org.apache.spark.sql.connector.write.DataWriter<org.apache.spark.sql.catalyst.InternalRow> createWriter(
        int partition, long task, long epoch) {
      if (epoch != batch) {
        throw new IllegalStateException("lance: batch " + batch + " was begun, and a task of " + epoch + " writes");
      }
      return factory.createWriter(partition, task);
    }
  }
}
