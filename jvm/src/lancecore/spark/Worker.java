package lancecore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * One Python process beside this JVM, and the connection to it.
 *
 * <pre>
 *   request     4 bytes of length, JSON {"do": name, ...}; for a write Arrow's stream follows
 *   answer      1 byte: 'J' JSON | 'A' Arrow's stream, then a trailer: 'K' and 8 bytes, the number of rows | 'E' JSON
 * </pre>
 *
 * A stream without its trailer is a process that died: what was read is no answer. The process listens on a socket of its own
 * in a folder that only this user may enter, and ends when its standard input does, so it never outlives this JVM.
 */
final class Worker implements AutoCloseable {
  static final ObjectMapper JSON = new ObjectMapper();
  private static final int PROTOCOL = 1;
  private static final long START_SECONDS = 120;
  private static final int LARGEST_JSON = 1 << 28;

  private final Process process;
  private final UnixDomainSocketAddress address;
  private SocketChannel channel;
  private boolean free = true;
  private boolean broken;

  private Worker(Process process, UnixDomainSocketAddress address) {
    this.process = process;
    this.address = address;
  }

  static Worker start(Interpreter interpreter) throws IOException {
    ProcessBuilder builder = new ProcessBuilder(List.of(interpreter.python, "-m", "lance_core.spark.bridge.worker"));
    builder.redirectError(ProcessBuilder.Redirect.INHERIT);
    interpreter.addTo(builder.environment());
    Process process;
    try {
      process = builder.start();
    } catch (IOException error) {
      throw new IOException("lance: cannot start the Python worker " + interpreter.python + ": " + error.getMessage()
          + ". Set spark.pyspark.python to an interpreter with airflow-provider-lance.");
    }
    try {
      JsonNode ready = handshake(process, interpreter);
      return new Worker(process, UnixDomainSocketAddress.of(ready.get("socket").asText()));
    } catch (IOException | RuntimeException error) {
      process.destroyForcibly();
      throw error;
    }
  }

  private static JsonNode handshake(Process process, Interpreter interpreter) throws IOException {
    BufferedReader output = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    long until = System.nanoTime() + START_SECONDS * 1_000_000_000L;
    while (!output.ready()) {
      if (!process.isAlive() && !output.ready()) {
        throw new IOException("lance: the Python worker " + interpreter.python + " ended with exit code " + process.exitValue()
            + " as it started; what it said is in this process's standard error. The interpreter needs airflow-provider-lance.");
      }
      if (System.nanoTime() > until) {
        throw new IOException("lance: the Python worker " + interpreter.python + " said nothing for " + START_SECONDS + " s.");
      }
      try {
        Thread.sleep(5);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
        throw new IOException("lance: interrupted while the Python worker started");
      }
    }
    JsonNode ready = JSON.readTree(output.readLine());
    String version = ready.path("version").asText();
    if (ready.path("protocol").asInt() != PROTOCOL || !version.equals(Version.VALUE)) {
      throw new IOException("lance: the jar is of release " + Version.VALUE + ", and " + interpreter.python + " has lance_core "
          + version + ". Use the jar that is in that installation.");
    }
    return ready;
  }

  /** Not one whose connection has ended from its side either: a killed process may be there for another moment. */
  boolean isAlive() {
    return !broken && process.isAlive();
  }

  /** What an error of the connection says of the process: nothing, where this side has closed it. */
  <E extends IOException> E noted(E error) {
    broken |= !(error instanceof ClosedChannelException);
    return error;
  }

  /** Whether the process has ended, of one whose connection has: a killed process may be there for another moment. */
  boolean hasDied() {
    try {
      return process.waitFor(5, TimeUnit.SECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Sends a request; its answer is read by one of the methods below, or by ArrowIn. */
  void send(ObjectNode request) throws IOException {
    if (channel == null) {
      SocketChannel opened = SocketChannel.open(StandardProtocolFamily.UNIX);
      try {
        opened.connect(address);
      } catch (IOException error) {
        opened.close();
        throw error;
      }
      channel = opened;
    }
    free = false;
    byte[] body = JSON.writeValueAsBytes(request);
    write(ByteBuffer.allocate(4 + body.length).putInt(body.length).put(body).flip());
  }

  void write(ByteBuffer bytes) throws IOException {
    try {
      while (bytes.hasRemaining()) {
        channel.write(bytes);
      }
    } catch (IOException error) {
      throw noted(error);
    }
  }

  SocketChannel channel() {
    return channel;
  }

  /** Whether the last request has its whole answer, so that the next one may be sent. */
  boolean isFree() {
    return free;
  }

  /** The JSON answer of a request. RuntimeException with the worker's error. */
  JsonNode answer() throws IOException {
    byte kind = readKind();
    if (kind == 'J') {
      JsonNode found = readJson();
      free = true;
      return found;
    }
    throw failure(kind);
  }

  byte readKind() throws IOException {
    return read(1).get();
  }

  JsonNode readJson() throws IOException {
    int length = read(4).getInt();
    if (length < 0 || length > LARGEST_JSON) {
      throw new IOException("lance: an answer of " + length + " bytes from the Python worker");
    }
    return JSON.readTree(read(length).array());
  }

  /** The trailer of a stream: the number of rows that it had. RuntimeException with the worker's error. */
  long trailer() throws IOException {
    byte kind = readKind();
    if (kind != 'K') {
      throw failure(kind);
    }
    long rows = read(8).getLong();
    free = true;
    return rows;
  }

  /**
   * The error that an answer of this kind is: its class and its message, which says what, where and the cure. Of a class that
   * every loader knows, because it travels from tasks to the driver.
   */
  RuntimeException failure(byte kind) throws IOException {
    if (kind != 'E') {
      throw new IOException("lance: an answer of unknown kind " + kind + " from the Python worker");
    }
    JsonNode error = readJson();
    broken = false; // it has closed its end because of that error
    disconnect(); // behind a write's error the worker does the same, since rows are still on the way
    return new RuntimeException(error.path("type").asText() + ": " + error.path("message").asText());
  }

  private ByteBuffer read(int size) throws IOException {
    ByteBuffer found = ByteBuffer.allocate(size);
    try {
      while (found.hasRemaining()) {
        if (channel.read(found) < 0) {
          throw new IOException("lance: the Python worker ended in the middle of an answer"
              + (process.isAlive() ? "" : " (exit code " + process.exitValue() + ")") + "; the task can be tried again.");
        }
      }
    } catch (IOException error) {
      throw noted(error);
    }
    return found.flip();
  }

  /** Ends the connection, not the process: what it was sending is dropped, and it waits for the next. */
  void disconnect() {
    if (channel != null) {
      try {
        channel.close();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      } finally {
        channel = null;
      }
    }
    free = true;
  }

  @Override
  public void close() {
    disconnect();
    process.destroyForcibly();
  }
}
