// The parts of the package that exist only on Apple's systems, for sources that use them and are compiled elsewhere.
import Foundation
import Wisp

final class KeychainAnchor: Anchor {
  init(service: String, account: String) {}
  func read() throws -> Data? { nil }
  func write(_ bytes: Data) throws {}
}
extension Ledger { static func exclude(fromBackups url: URL) throws {} }
extension Bundle { static var module: Bundle { .main } }  // SwiftPM writes it for a target with resources
