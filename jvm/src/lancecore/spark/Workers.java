package lancecore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The warm workers of this JVM: one for each task that reads or writes at a time, kept for the next task.
 *
 * <p>There are never more than tasks at work; of those that nobody uses the oldest ends when more than {@code KEPT} wait. A task
 * of an UPDATE reads with one and writes with another: with fewer, each such statement would begin new ones.
 */
final class Workers {
  private static final int KEPT = 2 * Math.max(2, Runtime.getRuntime().availableProcessors());
  private static final Deque<Worker> IDLE = new ArrayDeque<>();

  private Workers() {}

  static {
    Runtime.getRuntime().addShutdownHook(new Thread(Workers::closeIdle, "lance-workers"));
  }

  /** A worker for this caller alone, until `give`. */
  static Worker take() throws IOException {
    for (Worker found = poll(); found != null; found = poll()) {
      if (found.isAlive()) {
        return found;
      }
      found.close();
    }
    return Worker.start(Interpreter.here());
  }

  private static synchronized Worker poll() {
    return IDLE.pollLast();
  }

  /**
   * Takes a worker back. In the middle of an answer its connection ends, which drops that answer, and the process stays; one
   * that is gone is forgotten.
   */
  static void give(Worker worker) {
    if (!worker.isAlive()) {
      worker.close();
      return;
    }
    if (!worker.isFree()) {
      worker.disconnect();
    }
    Worker spare = null;
    synchronized (Workers.class) {
      IDLE.addLast(worker);
      if (IDLE.size() > KEPT) {
        spare = IDLE.pollFirst();
      }
    }
    if (spare != null) {
      spare.close();
    }
  }

  /** Asks one question and returns the JSON answer. */
  static JsonNode ask(ObjectNode request) {
    try {
      return ask(take(), request, false);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /**
   * A question that a new worker is asked again, when the first one dies before it has answered: those that wait may have died
   * with it, of the same cause.
   */
  static JsonNode askAgain(ObjectNode request) {
    try {
      JsonNode found = ask(take(), request, true);
      return found != null ? found : ask(Worker.start(Interpreter.here()), request.put("again", true), false);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** The answer; null where the worker has died and another one may be asked. */
  private static JsonNode ask(Worker worker, ObjectNode request, boolean again) throws IOException {
    try {
      worker.send(request);
      return worker.answer();
    } catch (IOException error) {
      if (!again || !worker.hasDied()) {
        throw error;
      }
      return null;
    } finally {
      give(worker);
    }
  }

  private static void closeIdle() {
    for (Worker found = poll(); found != null; found = poll()) {
      found.close();
    }
  }
}
