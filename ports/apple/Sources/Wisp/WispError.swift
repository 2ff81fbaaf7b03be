import CWisp
import Foundation

/// A refusal or failure of the library: its code, and its sentence, which names the file, the value and what is
/// allowed.
public struct WispError: Error, LocalizedError, CustomStringConvertible, Equatable, Sendable {
  public enum Code: Int, Sendable {
    case internalError = 1
    case invalidArgument = 2
    case invalidData = 3
    /// The request has no guarantee, or would pass the budget.
    case privacyRefused = 4
    case io = 5
    case unsupported = 6
    case cancelled = 7
    /// A planned run came before its time.
    case tooEarly = 8
  }

  public let code: Code
  public let sentence: String

  public init(_ code: Code, _ sentence: String) {
    self.code = code
    self.sentence = sentence
  }

  public var errorDescription: String? { sentence }
  public var description: String { sentence }
}

/// Calls a function of wisp.h, whose last argument is the error, and throws that error.
func check(_ call: (UnsafeMutablePointer<wisp_error>) -> wisp_code) throws {
  var error = wisp_error()
  let code = call(&error)
  if code == WISP_OK { return }
  let sentence = withUnsafeBytes(of: error.message) { text(in: $0) }
  throw WispError(WispError.Code(rawValue: Int(code.rawValue)) ?? .internalError, sentence)
}
