// What the package has on Apple's systems alone, for sources that use it and are compiled elsewhere.
import Foundation
import Wisp

final class KeychainAnchor: Anchor {
  init(service: String, account: String) {}
  func read() throws -> Data? { nil }
  func write(_ bytes: Data) throws {}
}
extension Ledger { static func exclude(fromBackups url: URL) throws {} }
extension Bundle { static var module: Bundle { .main } }  // SwiftPM writes it for a target with resources
