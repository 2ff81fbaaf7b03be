import CWisp
import Foundation

/// How far a ledger has got, kept where nobody who restores files restores it too. With it an old copy of the ledger that
/// was put back is refused. Always give it, or never; one for each ledger.
public protocol Anchor: AnyObject, Sendable {
  /// What was written last, or nil where nothing was. Called before each charge at least.
  func read() throws -> Data?
  /// Keeps these bytes, 64 at most, in the place of those before. They last when this returns.
  func write(_ bytes: Data) throws
}

/// An anchor as wisp.h calls it, for the length of one call of the library.
final class AnchorBridge {
  let pointer: UnsafeMutablePointer<wisp_anchor>?
  private let anchor: Anchor?

  /// - Parameter begins: there may be no anchor yet though something was charged.
  init(_ anchor: Anchor?, begins: Bool) {
    self.anchor = anchor
    pointer = anchor == nil ? nil : UnsafeMutablePointer<wisp_anchor>.allocate(capacity: 1)
    var made: wisp_anchor = sized()
    made.read = { data, bytes, capacity, length in
      guard let data = data, let bytes = bytes, let length = length else { return 1 }
      return AnchorBridge.of(data).read(into: bytes, capacity, length)
    }
    made.write = { data, bytes, length in
      guard let data = data, let bytes = bytes else { return 1 }
      return AnchorBridge.of(data).write(Data(bytes: bytes, count: length))
    }
    made.user_data = Unmanaged.passUnretained(self).toOpaque()
    made.begin = begins ? 1 : 0
    pointer?.initialize(to: made)
  }

  deinit { pointer?.deallocate() }

  private static func of(_ data: UnsafeMutableRawPointer) -> AnchorBridge {
    Unmanaged<AnchorBridge>.fromOpaque(data).takeUnretainedValue()
  }

  private func read(into bytes: UnsafeMutablePointer<UInt8>, _ capacity: Int, _ length: UnsafeMutablePointer<Int>) -> Int32 {
    guard let kept = try? anchor?.read() ?? Data(), kept.count <= capacity else { return 1 }
    kept.copyBytes(to: bytes, count: kept.count)
    length.pointee = kept.count
    return 0
  }

  private func write(_ bytes: Data) -> Int32 {
    do {
      try anchor?.write(bytes)
      return 0
    } catch {
      return 1
    }
  }
}
