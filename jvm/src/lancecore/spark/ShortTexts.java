package lancecore.spark;

import java.nio.ByteOrder;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The texts of up to 16 bytes that a column has given last, on the heap: a column of few values gives them again and again, and
 * a group-by copies each text that is not on the heap, for each row.
 *
 * <p>A text is known by its bytes, as one or two numbers, and its length. Of a batch whose first texts are rarely known no more
 * are looked up.
 */
final class ShortTexts {
  static final int LONGEST = 16;
  private static final int SLOTS = 256;
  static final int TRIED = 256;
  private static final boolean IN_ORDER = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

  private final UTF8String[] texts = new UTF8String[SLOTS];
  private final long[] heads = new long[SLOTS];
  private final long[] tails = new long[SLOTS];
  /** Where the last eight bytes begin that may be read. */
  private long last;
  private int asked;
  private int known;

  /** Look at a batch whose bytes end before an address. */
  void turn(long end) {
    last = IN_ORDER ? end - 8 : Long.MIN_VALUE;
    asked = 0;
    known = 0;
  }

  /** Whether a text of so many bytes at this address may be asked for. */
  boolean takes(long address, int length) {
    return length <= LONGEST && address <= last && (asked < TRIED || knowsMost());
  }

  boolean knowsMost() {
    return known * 2 > asked;
  }

  UTF8String get(long address, int length) {
    asked++;
    long head = Platform.getLong(null, address);
    long tail = 0;
    if (length < 8) {
      head &= (1L << (8 * length)) - 1;
    } else {
      tail = Platform.getLong(null, address + length - 8);
    }
    int slot = (int) (((head + length) * 0x9E3779B97F4A7C15L ^ tail * 0xC2B2AE3D27D4EB4FL) >>> 56);
    UTF8String found = texts[slot];
    if (found != null && heads[slot] == head && tails[slot] == tail && found.numBytes() == length) {
      known++;
      return found;
    }
    byte[] bytes = new byte[length];
    Platform.copyMemory(null, address, bytes, Platform.BYTE_ARRAY_OFFSET, length);
    found = UTF8String.fromBytes(bytes);
    texts[slot] = found;
    heads[slot] = head;
    tails[slot] = tail;
    return found;
  }
}
