package android.os;

import java.io.Closeable;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.lang.reflect.Field;

public class ParcelFileDescriptor implements Closeable {
  private final FileInputStream stream;

  public ParcelFileDescriptor(File file) throws IOException {
    stream = new FileInputStream(file);
  }

  /** Java hides the number; the test makes it accessible (--add-opens java.base/java.io). */
  public int getFd() {
    try {
      Field number = FileDescriptor.class.getDeclaredField("fd");
      number.setAccessible(true);
      return number.getInt(stream.getFD());
    } catch (ReflectiveOperationException | IOException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public void close() throws IOException {
    stream.close();
  }
}
