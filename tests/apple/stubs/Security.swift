// A stand-in for Apple's module of this name, with the parts that ports/apple uses, by its documentation. Types of Core
// Foundation are those that Swift turns them into.
import Foundation

public typealias CFTypeRef = AnyObject
public typealias CFString = String
public typealias CFData = Data
public typealias CFDictionary = [String: Any]
public typealias OSStatus = Int32
public final class CFAllocator {}
public final class CFError {}
public final class SecKey {}
public final class SecAccessControl {}

public struct SecAccessControlCreateFlags: OptionSet, Sendable {
  public let rawValue: UInt
  public init(rawValue: UInt) { self.rawValue = rawValue }
  public static let privateKeyUsage = SecAccessControlCreateFlags(rawValue: 1 << 30)
}
public struct SecKeyAlgorithm: Sendable { public static let ecdsaSignatureMessageX962SHA256 = SecKeyAlgorithm() }

public let errSecSuccess: OSStatus = 0
public let errSecItemNotFound: OSStatus = -25300
public let kSecClass: CFString = "kSecClass"
public let kSecClassGenericPassword: CFString = "kSecClassGenericPassword"
public let kSecClassKey: CFString = "kSecClassKey"
public let kSecAttrService: CFString = "kSecAttrService"
public let kSecAttrAccount: CFString = "kSecAttrAccount"
public let kSecAttrSynchronizable: CFString = "kSecAttrSynchronizable"
public let kSecAttrAccessible: CFString = "kSecAttrAccessible"
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
public let kSecAttrAccessControl: CFString = "kSecAttrAccessControl"
public let kSecAttrApplicationTag: CFString = "kSecAttrApplicationTag"
public let kSecAttrIsPermanent: CFString = "kSecAttrIsPermanent"
public let kSecAttrKeyClass: CFString = "kSecAttrKeyClass"
public let kSecAttrKeyClassPrivate: CFString = "kSecAttrKeyClassPrivate"
public let kSecAttrKeyClassPublic: CFString = "kSecAttrKeyClassPublic"
public let kSecAttrKeySizeInBits: CFString = "kSecAttrKeySizeInBits"
public let kSecAttrKeyType: CFString = "kSecAttrKeyType"
public let kSecAttrKeyTypeECSECPrimeRandom: CFString = "kSecAttrKeyTypeECSECPrimeRandom"
public let kSecAttrTokenID: CFString = "kSecAttrTokenID"
public let kSecAttrTokenIDSecureEnclave: CFString = "kSecAttrTokenIDSecureEnclave"
public let kSecMatchLimit: CFString = "kSecMatchLimit"
public let kSecMatchLimitOne: CFString = "kSecMatchLimitOne"
public let kSecPrivateKeyAttrs: CFString = "kSecPrivateKeyAttrs"
public let kSecReturnData: CFString = "kSecReturnData"
public let kSecReturnRef: CFString = "kSecReturnRef"
public let kSecUseDataProtectionKeychain: CFString = "kSecUseDataProtectionKeychain"
public let kSecValueData: CFString = "kSecValueData"

public typealias SecError = UnsafeMutablePointer<Unmanaged<CFError>?>?
public func SecItemAdd(_ item: CFDictionary, _ added: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus { -4 }
public func SecItemCopyMatching(_ query: CFDictionary, _ found: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus { -4 }
public func SecItemDelete(_ query: CFDictionary) -> OSStatus { -4 }
public func SecItemUpdate(_ query: CFDictionary, _ changed: CFDictionary) -> OSStatus { -4 }
public func SecAccessControlCreateWithFlags(
  _ allocator: CFAllocator?, _ protection: Any, _ flags: SecAccessControlCreateFlags, _ error: SecError
) -> SecAccessControl? { nil }
public func SecKeyCreateRandomKey(_ attributes: CFDictionary, _ error: SecError) -> SecKey? { nil }
public func SecKeyCreateWithData(_ data: CFData, _ attributes: CFDictionary, _ error: SecError) -> SecKey? { nil }
public func SecKeyCopyPublicKey(_ key: SecKey) -> SecKey? { nil }
public func SecKeyCopyExternalRepresentation(_ key: SecKey, _ error: SecError) -> CFData? { nil }
public func SecKeyCreateSignature(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ message: CFData, _ error: SecError
) -> CFData? { nil }
public func SecKeyVerifySignature(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ message: CFData, _ signature: CFData, _ error: SecError
) -> Bool { false }
