package lancecore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
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

  @Override
  public void commit(WriterCommitMessage[] messages) {
    Planner.commit(writer, results(messages));
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {
    Planner.abort(writer);
  }

  private static List<String> results(WriterCommitMessage[] messages) {
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

  /** Append, or overwrite where Spark truncates first. */
  static final class Builder implements WriteBuilder, SupportsTruncate {
    private final Map<String, String> options;
    private final StructType schema;
    private boolean overwrite;

    Builder(Map<String, String> options, StructType schema) {
      this.options = options;
      this.schema = schema;
    }

    @Override
    public WriteBuilder truncate() {
      overwrite = true;
      return this;
    }

    @Override
    public Write build() {
      return new Write() {
        @Override
        public BatchWrite toBatch() {
          return new LanceWrite(schema, Planner.begin(options, schema, overwrite));
        }

        @Override
        public String description() {
          return overwrite ? "lance overwrite" : "lance append";
        }
      };
    }
  }
}
