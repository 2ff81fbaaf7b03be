package android.app;

import android.content.Context;
import android.content.res.AssetManager;
import android.os.Bundle;
import android.view.View;
import java.io.File;

public class Activity extends Context {
  @Override
  public AssetManager getAssets() {
    throw new UnsupportedOperationException();
  }

  @Override
  public File getFilesDir() {
    throw new UnsupportedOperationException();
  }

  @Override
  public File getNoBackupFilesDir() {
    throw new UnsupportedOperationException();
  }

  @Override
  public Context getApplicationContext() {
    throw new UnsupportedOperationException();
  }

  protected void onCreate(Bundle state) {}

  protected void onDestroy() {}

  public void setContentView(View view) {}
}
