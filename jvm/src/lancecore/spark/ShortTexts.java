package lancecore.spark;

import java.nio.ByteOrder;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The texts of up to 16 bytes that a column has given last, on the heap: a column of few values gives them again and again, and
 * a group-by copies each text that is not on the heap, for each row.
 *
 * <p>A text is known by its bytes, as one or two numbers, and its length. Of a batch with many unknown texts the rest is not
 * looked up.
 */
final class ShortTexts {
  static final int LONGEST = 16;
  private static final int SLOTS = 256;
  /** Of a batch; then the rest of it is not looked up. */
  private static final int MOST_UNKNOWN = 1 << 10;
  private static final boolean IN_ORDER = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

  private final UTF8String[] texts = new UTF8String[SLOTS];
  private final long[] heads = new long[SLOTS];
  private final long[] tails = new long[SLOTS];
  /** Where the last eight bytes begin that may be read. */
  private long last;
  private int unknown;

  /** Look at a batch whose bytes end before an address. */
  void turn(long end) {
    last = IN_ORDER ? end - 8 : Long.MIN_VALUE;
    unknown = 0;
  }

  /** Whether no more than these many have been unknown since the last turn. */
  boolean hasFewUnknown(int most) {
    return unknown <= most;
  }

  /** The text at an address, on the heap where it is short and has been there before. */
  UTF8String get(long address, int length) {
    if (length > LONGEST || address > last || unknown > MOST_UNKNOWN) {
      return UTF8String.fromAddress(null, address, length);
    }
    long head = Platform.getLong(null, address);
    long tail = 0;
    if (length < 8) {
      head &= (1L << (8 * length)) - 1;
    } else {
      tail = Platform.getLong(null, address + length - 8);
    }
    int slot = (int) (((head + length) * 0x9E3779B97F4A7C15L ^ tail * 0xC2B2AE3D27D4EB4FL) >>> 56);
    UTF8String found = texts[slot];
    return heads[slot] == head && tails[slot] == tail && found != null && found.numBytes() == length
        ? found
        : keep(slot, head, tail, address, length);
  }

  /** Apart from `get`, which the JVM then takes into its loops. */
  private UTF8String keep(int slot, long head, long tail, long address, int length) {
    unknown++;
    byte[] bytes = new byte[length];
    Platform.copyMemory(null, address, bytes, Platform.BYTE_ARRAY_OFFSET, length);
    UTF8String found = UTF8String.fromBytes(bytes);
    texts[slot] = found;
    heads[slot] = head;
    tails[slot] = tail;
    return found;
  }
}
