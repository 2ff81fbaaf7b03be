package android.content.res;

import android.os.ParcelFileDescriptor;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;

/** Assets are files NAME.OFFSET of a folder: the asset begins at that byte of the file, and ends with the file. */
public final class AssetManager {
  private final File folder;

  public AssetManager(File folder) {
    this.folder = folder;
  }

  public InputStream open(String name) throws IOException {
    AssetFileDescriptor found = openFd(name);
    FileInputStream stream = new FileInputStream(new File(folder, name + "." + found.getStartOffset()));
    found.close();
    stream.skip(found.getStartOffset());
    return stream;
  }

  public AssetFileDescriptor openFd(String name) throws IOException {
    for (File file : folder.listFiles()) {
      String rest = file.getName().startsWith(name + ".") ? file.getName().substring(name.length() + 1) : "";
      if (!rest.matches("[0-9]+")) continue;
      long offset = Long.parseLong(rest);
      return new AssetFileDescriptor(new ParcelFileDescriptor(file), offset, file.length() - offset);
    }
    throw new FileNotFoundException("This file can not be opened as a file descriptor; it is probably compressed");
  }
}
