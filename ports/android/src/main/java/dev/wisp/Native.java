package dev.wisp;

import java.nio.ByteBuffer;

/**
 * The functions of {@code libwisp-jni.so} (ports/android/jni). Only this package sees and calls it.
 *
 * <p>It is Java, not Kotlin, because the library registers its functions by the names and signatures that are written
 * here. A handle is a number returned by one of {@code open...}. The library cannot check a handle: {@link Handle}
 * ensures that one thread at a time uses it, and nobody after it was closed.
 */
final class Native {
  static {
    System.loadLibrary("wisp-jni");
  }

  private Native() {}

  /** Called after each step, on the thread of the call. False: stop. */
  interface Progress {
    boolean mayContinue(long step, long steps, double loss, double epsilon);
  }

  /** Called on the thread of the call. */
  interface Logger {
    void write(boolean warning, String sentence);
  }

  /** The outside of a fleet. Called on the thread of the call. */
  interface Transport {
    /**
     * Gives the answer's bytes to {@link #takeAnswer}, and its status and the server's time to {@code reply}. Returns
     * 0, or 1 if trying again later may help, or 2.
     */
    int post(String url, String headers, byte[] body, long answer, double[] reply);

    byte[] sign(byte[] message);

    boolean verify(String keyPem, byte[] message, byte[] der);

    /** False: stop. */
    boolean pause(double seconds);
  }

  static native String version();

  static native long openFile(String path, OpenOptions options);

  static native long openDescriptor(String name, int descriptor, long offset, long length, OpenOptions options);

  /** The address of a direct buffer; 0 for another buffer. */
  static native long address(ByteBuffer buffer);

  /** The library keeps the buffer until the model is closed. */
  static native long openMemory(String name, ByteBuffer buffer, long start, long size, OpenOptions options);

  static native void closeModel(long model);

  static native long planMemory(String path, OpenOptions options);

  static native ModelInfo info(long model);

  static native int findItem(long model, String key);

  static native String[] keys(long model, int[] items);

  static native String[] names(long model, int[] items);

  /**
   * Returns the items, best first, and writes their scores to {@code scores}, whose length is the largest number of
   * items.
   */
  static native int[] recommend(
      long model, int[] history, int[] excluded, int[] candidates, int allowSeen, float[] scores);

  static native long openLog(String path);

  static native void closeLog(long log);

  static native void append(long log, String[] users, String[] items, long[] times);

  static native int[] history(long log, long model, String user, int most);

  static native long erase(long log, String user);

  static native long prune(long log, PruneOptions options);

  static native LogCounts counts(long log);

  static native String users(long log, String after, int limit);

  static native PersonaliseResult personalise(PersonaliseOptions options, Anchor anchor, Progress progress);

  static native long personaliseMemory(PersonaliseOptions options);

  static native Plan plan(PlanOptions options, Anchor anchor);

  static native PlannedRunResult runPlanned(PlannedRunOptions options, Anchor anchor, Progress progress, Logger logger);

  static native Budget budget(String ledger, Anchor anchor, double delta);

  static native String statement(String ledger, Anchor anchor, double delta, boolean json);

  static native Quality evaluate(String model, String log, int threads);

  static native RebaseResult rebase(String from, String to, String output, String ledger, boolean startOver);

  /** The library keeps the objects until the fleet is closed. */
  static native long openFleet(
      FleetOptions options,
      String publicKeyPem,
      Transport transport,
      Anchor anchor,
      Anchor recordsAnchor,
      Logger logger);

  /** {@code answer} is what a call of {@link Transport#post} was given, while it runs. False: there are too many. */
  static native boolean takeAnswer(long answer, byte[] bytes, int length);

  static native FleetProgress workFleet(long fleet, double seconds);

  static native void closeFleet(long fleet);
}
