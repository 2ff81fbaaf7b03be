package android.content.res;

import android.os.ParcelFileDescriptor;
import java.io.Closeable;
import java.io.IOException;

public class AssetFileDescriptor implements Closeable {
  private final ParcelFileDescriptor descriptor;
  private final long offset;
  private final long length;

  public AssetFileDescriptor(ParcelFileDescriptor descriptor, long offset, long length) {
    this.descriptor = descriptor;
    this.offset = offset;
    this.length = length;
  }

  public ParcelFileDescriptor getParcelFileDescriptor() {
    return descriptor;
  }

  public long getStartOffset() {
    return offset;
  }

  public long getLength() {
    return length;
  }

  @Override
  public void close() throws IOException {
    descriptor.close();
  }
}
