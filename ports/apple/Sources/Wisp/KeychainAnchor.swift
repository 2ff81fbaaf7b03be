#if canImport(Security)
  import Foundation
  import Security

  /// An anchor in this device's keychain. The item does not move to another device, and it stays when the app is
  /// deleted. A backup of this device contains it too: keep the ledger out of backups as well (Ledger.exclude). On
  /// macOS it needs an app that is signed with a keychain access group or an application identifier. In others, and in
  /// command-line programs, each call throws (errSecMissingEntitlement, -34018).
  public final class KeychainAnchor: Anchor {
    private let service: String
    private let account: String

    /// - Parameters:
    ///   - service: the app's own name for its anchors.
    ///   - account: the name of the ledger; each ledger has its own anchor.
    public init(service: String, account: String) {
      self.service = service
      self.account = account
    }

    private var query: [String: Any] {
      [
        kSecClass as String: kSecClassGenericPassword,
        kSecAttrService as String: service,
        kSecAttrAccount as String: account,
        kSecAttrSynchronizable as String: false,
        // Without this, macOS would use the login keychain, a file that is copied to other devices. iOS has no other
        // keychain.
        kSecUseDataProtectionKeychain as String: true,
      ]
    }

    public func read() throws -> Data? {
      var wanted = query
      wanted[kSecReturnData as String] = true
      wanted[kSecMatchLimit as String] = kSecMatchLimitOne
      var found: CFTypeRef?
      let status = SecItemCopyMatching(wanted as CFDictionary, &found)
      if status == errSecItemNotFound { return nil }
      guard status == errSecSuccess, let bytes = found as? Data else { throw refused("cannot be read", status) }
      return bytes
    }

    public func write(_ bytes: Data) throws {
      let value = [kSecValueData as String: bytes]
      var status = SecItemUpdate(query as CFDictionary, value as CFDictionary)
      if status == errSecItemNotFound {
        var item = query
        item[kSecValueData as String] = bytes
        // A run may run while the device is locked, but not before it was first unlocked.
        item[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
        status = SecItemAdd(item as CFDictionary, nil)
      }
      guard status == errSecSuccess else { throw refused("cannot be written", status) }
    }

    /// Deletes the anchor, for an app that deletes a ledger with everything that was learned under it.
    public func remove() throws {
      let status = SecItemDelete(query as CFDictionary)
      guard status == errSecSuccess || status == errSecItemNotFound else { throw refused("cannot be removed", status) }
    }

    private func refused(_ what: String, _ status: OSStatus) -> WispError {
      WispError(.io, "the anchor '\(account)' of '\(service)' in the keychain \(what): OSStatus \(status)")
    }
  }
#endif
