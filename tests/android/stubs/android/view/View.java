package android.view;

import android.content.Context;

public class View {
  public View(Context context) {}
}
