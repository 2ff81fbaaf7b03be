// The parts of the package that exist only on Apple's systems, for sources that use them and are compiled elsewhere.
import Foundation
import Wisp

extension Ledger { static func exclude(fromBackups url: URL) throws {} }
