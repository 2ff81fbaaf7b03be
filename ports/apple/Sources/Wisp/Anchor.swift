import CWisp
import Foundation

/// The ledger's progress, stored where restoring files does not restore it. With it, an old copy of the ledger that was
/// put back is refused. Give it always or never; each ledger has its own.
public protocol Anchor: AnyObject, Sendable {
  /// The bytes of the last `write`, or nil if it was never called. Read at least before each charge. A call that
  /// needs the anchor rethrows what this or `write` throws.
  func read() throws -> Data?
  /// Replaces the stored bytes by these, 64 at most. They are durable when this returns.
  func write(_ bytes: Data) throws
}

/// An anchor in the form of wisp.h, until this object goes.
final class AnchorBridge {
  let pointer: UnsafeMutablePointer<wisp_anchor>?
  private let anchor: Anchor?
  private var failure: Error?

  /// - Parameter begins: the anchor may still be missing although something was charged.
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

  /// The free function `check` within `rethrowing`.
  func checked(_ call: (UnsafeMutablePointer<wisp_error>) -> wisp_code) throws { try rethrowing { try check(call) } }

  /// An error that the anchor threw replaces the library's, which only knows that the anchor failed.
  func rethrowing(_ body: () throws -> Void) throws {
    failure = nil
    do {
      try body()
    } catch {
      throw failure ?? error
    }
  }

  private static func of(_ data: UnsafeMutableRawPointer) -> AnchorBridge {
    Unmanaged<AnchorBridge>.fromOpaque(data).takeUnretainedValue()
  }

  private func read(
    into bytes: UnsafeMutablePointer<UInt8>, _ capacity: Int, _ length: UnsafeMutablePointer<Int>
  ) -> Int32 {
    do {
      let kept = try anchor?.read() ?? Data()
      guard kept.count <= capacity else {
        throw WispError(.invalidData, "the anchor has \(kept.count) bytes; allowed are \(capacity)")
      }
      kept.copyBytes(to: bytes, count: kept.count)
      length.pointee = kept.count
      return 0
    } catch {
      failure = error
      return 1
    }
  }

  private func write(_ bytes: Data) -> Int32 {
    do {
      try anchor?.write(bytes)
      return 0
    } catch {
      failure = error
      return 1
    }
  }
}
