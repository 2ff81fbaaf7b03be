package android.widget;

import android.content.Context;
import android.view.View;

public abstract class AdapterView<T> extends View {
  public interface OnItemClickListener {
    void onItemClick(AdapterView<?> parent, View view, int position, long id);
  }

  public AdapterView(Context context) {
    super(context);
  }

  public void setOnItemClickListener(OnItemClickListener listener) {}

  public abstract T getAdapter();

  public abstract void setAdapter(T adapter);
}
