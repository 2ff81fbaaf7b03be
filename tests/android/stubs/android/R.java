package android;

public final class R {
  public static final class layout {
    public static final int simple_list_item_1 = 17367043;
  }
}
