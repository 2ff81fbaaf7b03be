package android.widget;

import android.content.Context;

public class ListView extends AdapterView<ListAdapter> {
  public ListView(Context context) {
    super(context);
  }

  @Override
  public ListAdapter getAdapter() {
    return null;
  }

  @Override
  public void setAdapter(ListAdapter adapter) {}
}
