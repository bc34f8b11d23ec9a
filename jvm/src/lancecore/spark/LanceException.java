package lancecore.spark;

/** An error of the Python worker: its class and its message, which says what, where and the cure. */
public final class LanceException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  LanceException(String type, String message) {
    super(type + ": " + message);
  }
}
