package lancecore.spark;

import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column of the batch that a stream has read last. Its memory is the stream's: the next batch is read into it, though Spark
 * closes the columns of the last one.
 *
 * <pre>
 *   numbers, dates, times    Fixed     at address + width * row
 *   texts, bytes             Varied    between two offsets
 *   structs, lists           Struct, Items, of such columns
 *   others                   by Arrow's own accessors: three objects to look into for each value, half of a scan's time
 * </pre>
 *
 * Sizes are compared with those of the buffers once for each batch; a worker's lengths are not believed beyond that.
 */
class Column extends ArrowColumnVector {
  final FieldVector vector;
  /** Of the bits that say which values are there; 0 where all are. */
  private long validity;
  long data;
  long offsets;

  private Column(FieldVector vector) {
    super(vector);
    this.vector = vector;
  }

  /** `keepsTexts`: texts of few values may be kept on the heap (see `Repeated`). */
  static Column of(FieldVector vector, boolean keepsTexts) {
    if (vector instanceof BaseFixedWidthVector) {
      return new Fixed(vector);
    }
    if (vector instanceof VarCharVector && keepsTexts) {
      Repeated few = new Repeated(vector);
      return few.repeats() ? few : new Varied(vector);
    }
    if (vector instanceof VarCharVector || vector instanceof VarBinaryVector) {
      return new Varied(vector);
    }
    if (vector instanceof StructVector) {
      return new Struct((StructVector) vector, keepsTexts);
    }
    if (vector instanceof ListVector && !(vector instanceof MapVector)) {
      return new Items((ListVector) vector, keepsTexts);
    }
    return new Column(vector);
  }

  /** Look at what the stream has read now. */
  void turn() {}

  @Override
  public void close() {}

  final void turnValidity() {
    validity = vector.getNullCount() == 0 ? 0 : vector.getValidityBufferAddress();
    require(vector.getValidityBuffer().capacity(), validity == 0 ? 0 : (vector.getValueCount() + 7L) / 8);
  }

  /** The last offset, which must lie within what it points into. */
  final long turnOffsets() {
    offsets = vector.getOffsetBufferAddress();
    int rows = vector.getValueCount();
    if (rows == 0) {
      return 0;
    }
    require(vector.getOffsetBuffer().capacity(), 4L * (rows + 1));
    return Platform.getInt(null, offsets + 4L * rows);
  }

  final void require(long capacity, long needed) {
    if (needed < 0 || capacity < needed) {
      throw new IllegalStateException("lance: the column " + vector.getName() + " came with " + capacity + " bytes of " + needed);
    }
  }

  final boolean isAbsent(int row) {
    return validity != 0 && (Platform.getByte(null, validity + (row >> 3)) >> (row & 7) & 1) == 0;
  }

  final int offset(int row) {
    return Platform.getInt(null, offsets + 4L * row);
  }

  private static final class Fixed extends Column {
    private final int width;

    Fixed(FieldVector vector) {
      super(vector);
      width = ((BaseFixedWidthVector) vector).getTypeWidth();
    }

    @Override
    void turn() {
      turnValidity();
      data = vector.getDataBufferAddress();
      long rows = vector.getValueCount();
      require(vector.getDataBuffer().capacity(), width == 0 ? (rows + 7) / 8 : width * rows);
    }

    @Override
    public boolean isNullAt(int row) {
      return isAbsent(row);
    }

    @Override
    public boolean getBoolean(int row) {
      return (Platform.getByte(null, data + (row >> 3)) >> (row & 7) & 1) != 0;
    }

    @Override
    public byte getByte(int row) {
      return Platform.getByte(null, data + row);
    }

    @Override
    public short getShort(int row) {
      return Platform.getShort(null, data + 2L * row);
    }

    @Override
    public int getInt(int row) {
      return Platform.getInt(null, data + 4L * row);
    }

    @Override
    public long getLong(int row) {
      return Platform.getLong(null, data + 8L * row);
    }

    @Override
    public float getFloat(int row) {
      return Platform.getFloat(null, data + 4L * row);
    }

    @Override
    public double getDouble(int row) {
      return Platform.getDouble(null, data + 8L * row);
    }
  }

  private static class Varied extends Column {
    /** Behind the last byte. */
    long end;

    Varied(FieldVector vector) {
      super(vector);
    }

    @Override
    void turn() {
      turnValidity();
      data = ((BaseVariableWidthVector) vector).getDataBufferAddress();
      long bytes = turnOffsets();
      require(vector.getDataBuffer().capacity(), bytes);
      end = data + bytes;
    }

    @Override
    public boolean isNullAt(int row) {
      return isAbsent(row);
    }

    @Override
    public UTF8String getUTF8String(int row) {
      if (isAbsent(row)) {
        return null;
      }
      int start = offset(row);
      return UTF8String.fromAddress(null, data + start, offset(row + 1) - start);
    }

    @Override
    public byte[] getBinary(int row) {
      if (isAbsent(row)) {
        return null;
      }
      int start = offset(row);
      byte[] found = new byte[offset(row + 1) - start];
      Platform.copyMemory(null, data + start, found, Platform.BYTE_ARRAY_OFFSET, found.length);
      return found;
    }
  }

  /** Of few and short texts: a class of its own, because a new text for each value costs nothing where no other is given. */
  private static final class Repeated extends Varied {
    private static final int TRIED = 256;
    private final ShortTexts texts = new ShortTexts();

    Repeated(FieldVector vector) {
      super(vector);
    }

    @Override
    void turn() {
      super.turn();
      texts.turn(end);
    }

    @Override
    public UTF8String getUTF8String(int row) {
      if (isAbsent(row)) {
        return null;
      }
      int start = offset(row);
      return texts.get(data + start, offset(row + 1) - start);
    }

    /** Whether most of the first texts have been there before. */
    boolean repeats() {
      turn();
      int tried = Math.min(TRIED, vector.getValueCount());
      for (int row = 0; row < tried; row++) {
        getUTF8String(row);
      }
      return texts.hasFewUnknown(tried / 2);
    }
  }

  private static final class Struct extends Column {
    private final Column[] parts;

    Struct(StructVector vector, boolean keepsTexts) {
      super(vector);
      parts = vector.getChildrenFromFields().stream().map(part -> of(part, keepsTexts)).toArray(Column[]::new);
    }

    @Override
    void turn() {
      turnValidity();
      for (Column part : parts) {
        part.turn();
        require(part.vector.getValueCount(), vector.getValueCount());
      }
    }

    @Override
    public boolean isNullAt(int row) {
      return isAbsent(row);
    }

    @Override
    public Column getChild(int index) {
      return parts[index];
    }
  }

  private static final class Items extends Column {
    private final Column items;

    Items(ListVector vector, boolean keepsTexts) {
      super(vector);
      items = of(vector.getDataVector(), keepsTexts);
    }

    @Override
    void turn() {
      turnValidity();
      items.turn();
      require(items.vector.getValueCount(), turnOffsets());
    }

    @Override
    public boolean isNullAt(int row) {
      return isAbsent(row);
    }

    @Override
    public ColumnarArray getArray(int row) {
      if (isAbsent(row)) {
        return null;
      }
      int start = offset(row);
      return new ColumnarArray(items, start, offset(row + 1) - start);
    }
  }
}
