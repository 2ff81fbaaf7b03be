package android.widget;

import android.content.Context;
import java.util.List;

public class ArrayAdapter<T> implements ListAdapter {
  public ArrayAdapter(Context context, int resource, List<T> objects) {}
}
