import Foundation

/// A public key on P-256 or P-384, as PEM (SubjectPublicKeyInfo) and as the point that Apple's Security calls its
/// external representation.
enum PublicKey {
  private static let begins = "-----BEGIN PUBLIC KEY-----\n"
  private static let ends = "\n-----END PUBLIC KEY-----\n"
  /// The bytes of DER before a point, by the length of the point.
  private static let headers: [(count: Int, der: Data)] = [
    (
      65,
      Data([
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48,
        0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
      ])
    ),
    (
      97,
      Data([
        0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x05, 0x2B, 0x81, 0x04,
        0x00, 0x22, 0x03, 0x62, 0x00,
      ])
    ),
  ]

  static func pem(of point: Data) -> String? {
    guard let header = headers.first(where: { $0.count == point.count }) else { return nil }
    let der = header.der + point
    return begins + der.base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed]) + ends
  }

  static func point(in pem: String) -> Data? {
    let pem = pem.replacingOccurrences(of: "\r\n", with: "\n").trimmingCharacters(in: .whitespacesAndNewlines) + "\n"
    guard pem.hasPrefix(begins), pem.hasSuffix(ends), pem.count > begins.count + ends.count else { return nil }
    let body = pem.dropFirst(begins.count).dropLast(ends.count).filter { $0 != "\n" }
    guard let der = Data(base64Encoded: String(body)) else { return nil }
    return headers.first { der.count == $0.der.count + $0.count && der.starts(with: $0.der) }.map {
      Data(der.dropFirst($0.der.count))
    }
  }
}

#if canImport(Security)
  import Security

  /// A fleet's transport for Apple's systems: URLSession, and a key of this device alone. The key is made in the Secure
  /// Enclave, or in the keychain of a device that has none. It stays when the app is deleted. On macOS it needs a
  /// signed app, as KeychainAnchor does.
  public final class KeychainTransport: FleetTransport, @unchecked Sendable {
    public let publicKeyPEM: String
    private let key: SecKey
    private let http = FleetHTTP()

    /// Finds the key, or makes it.
    /// - Parameter tag: the app's own name for the key.
    public init(tag: String) throws {
      key = try Self.find(tag) ?? Self.make(tag)
      guard let known = SecKeyCopyPublicKey(key), let point = SecKeyCopyExternalRepresentation(known, nil),
        let pem = PublicKey.pem(of: point as Data)
      else { throw WispError(.io, "the key '\(tag)' in the keychain has no public key on P-256") }
      publicKeyPEM = pem
    }

    /// Deletes the key: the server then knows this device no more.
    public static func remove(tag: String) throws {
      let status = SecItemDelete(query(tag) as CFDictionary)
      guard status == errSecSuccess || status == errSecItemNotFound else {
        throw WispError(.io, "the key '\(tag)' in the keychain cannot be removed: OSStatus \(status)")
      }
    }

    public func post(
      _ body: Data, to url: URL, headers: [String: String], take: @escaping @Sendable (Data) -> Bool
    ) throws -> FleetAnswer {
      try http.post(body, to: url, headers: headers, take: take)
    }

    public func sign(_ message: Data) throws -> Data {
      var error: Unmanaged<CFError>?
      let signed = SecKeyCreateSignature(key, .ecdsaSignatureMessageX962SHA256, message as CFData, &error)
      guard let signature = signed else { throw Self.failed("cannot sign", error) }
      return signature as Data
    }

    public func verify(_ signature: Data, of message: Data, keyPEM: String) throws -> Bool {
      guard let point = PublicKey.point(in: keyPEM) else {
        throw WispError(.invalidData, "the operator's key is no public key on P-256 or P-384 in PEM")
      }
      let attributes: [String: Any] = [
        kSecAttrKeyType as String: kSecAttrKeyTypeECSECPrimeRandom,
        kSecAttrKeyClass as String: kSecAttrKeyClassPublic,
      ]
      var error: Unmanaged<CFError>?
      guard let known = SecKeyCreateWithData(point as CFData, attributes as CFDictionary, &error) else {
        throw Self.failed("cannot be read", error)
      }
      return SecKeyVerifySignature(
        known, .ecdsaSignatureMessageX962SHA256, message as CFData, signature as CFData, nil)
    }

    private static func query(_ tag: String) -> [String: Any] {
      [
        kSecClass as String: kSecClassKey,
        kSecAttrKeyType as String: kSecAttrKeyTypeECSECPrimeRandom,
        kSecAttrKeyClass as String: kSecAttrKeyClassPrivate,
        kSecAttrApplicationTag as String: Data(tag.utf8),
        kSecUseDataProtectionKeychain as String: true,
      ]
    }

    private static func find(_ tag: String) throws -> SecKey? {
      var wanted = query(tag)
      wanted[kSecReturnRef as String] = true
      wanted[kSecMatchLimit as String] = kSecMatchLimitOne
      var found: CFTypeRef?
      let status = SecItemCopyMatching(wanted as CFDictionary, &found)
      if status == errSecItemNotFound { return nil }
      guard status == errSecSuccess, let key = found else {
        throw WispError(.io, "the key '\(tag)' in the keychain cannot be read: OSStatus \(status)")
      }
      return (key as! SecKey)  // the class that was asked for
    }

    private static func make(_ tag: String) throws -> SecKey {
      var error: Unmanaged<CFError>?
      // Work may run while the device is locked, but not before it was first unlocked.
      let access = SecAccessControlCreateWithFlags(
        nil, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, .privateKeyUsage, &error)
      guard let guarded = access else { throw failed("cannot be guarded", error) }
      var kept: [String: Any] = [
        kSecAttrIsPermanent as String: true,
        kSecAttrApplicationTag as String: Data(tag.utf8),
        kSecAttrAccessControl as String: guarded,
      ]
      var attributes: [String: Any] = [
        kSecAttrKeyType as String: kSecAttrKeyTypeECSECPrimeRandom,
        kSecAttrKeySizeInBits as String: 256,
        kSecAttrTokenID as String: kSecAttrTokenIDSecureEnclave,
        kSecUseDataProtectionKeychain as String: true,
        kSecPrivateKeyAttrs as String: kept,
      ]
      if let key = SecKeyCreateRandomKey(attributes as CFDictionary, nil) { return key }
      attributes[kSecAttrTokenID as String] = nil
      kept[kSecAttrAccessControl as String] = nil
      kept[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
      attributes[kSecPrivateKeyAttrs as String] = kept
      guard let key = SecKeyCreateRandomKey(attributes as CFDictionary, &error) else {
        throw failed("cannot be made", error)
      }
      return key
    }

    private static func failed(_ what: String, _ error: Unmanaged<CFError>?) -> WispError {
      let why = error.map { String(describing: $0.takeRetainedValue()) } ?? "no reason is given"
      return WispError(.io, "the key \(what): \(why)")
    }
  }
#endif
