package android.security.keystore;

import java.security.spec.AlgorithmParameterSpec;

public final class KeyGenParameterSpec implements AlgorithmParameterSpec {
  public static final class Builder {
    public Builder(String alias, int purposes) {}

    public Builder setBlockModes(String... modes) {
      return this;
    }

    public Builder setEncryptionPaddings(String... paddings) {
      return this;
    }

    public Builder setAlgorithmParameterSpec(AlgorithmParameterSpec spec) {
      return this;
    }

    public Builder setDigests(String... digests) {
      return this;
    }

    public Builder setKeySize(int bits) {
      return this;
    }

    public Builder setIsStrongBoxBacked(boolean backed) {
      return this;
    }

    public KeyGenParameterSpec build() {
      return new KeyGenParameterSpec();
    }
  }
}
