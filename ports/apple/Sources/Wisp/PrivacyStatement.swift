import Foundation

/// The library's statement about everything in a ledger, as values. The words for people are
/// `Ledger.statement(delta:)`. A field that a later version adds is left out; the JSON (`asJSON: true`) has everything.
public struct PrivacyStatement: Codable, Sendable, Equatable {
  public let version: Int
  /// Who holds the records, who computes, and what is released.
  public let setting: String
  public let definition: Definition
  public let accounting: Accounting

  public struct Definition: Codable, Sendable, Equatable {
    public let dataset: String
    /// The privacy unit, protected as a whole: "user", "session", "day" or "interaction".
    public let privacyUnit: String
    public let adjacency: String
    public let protected: [String]
    public let notProtected: [String]

    enum CodingKeys: String, CodingKey {
      case dataset, adjacency, protected
      case privacyUnit = "privacy_unit"
      case notProtected = "not_protected"
    }
  }

  public struct Accounting: Codable, Sendable, Equatable {
    /// "differential privacy", or the reason why nothing is guaranteed.
    public let guarantee: String
    /// An upper bound; nil: it cannot be bounded.
    public let epsilon: Double?
    public let delta: Double?
    public let steps: Int?
    public let mechanisms: [String]?
    /// The limit over everything that is ever done with these records; nil: no limit was set.
    public let limit: Limit?
  }

  public struct Limit: Codable, Sendable, Equatable {
    public let epsilon: Double
    public let delta: Double
  }

  enum CodingKeys: String, CodingKey {
    case setting, definition, accounting
    case version = "statement_version"
  }
}

extension Ledger {
  /// The statement over everything in the ledger, as values. Reading it costs nothing.
  public func privacyStatement(delta: Double) throws -> PrivacyStatement {
    try JSONDecoder().decode(PrivacyStatement.self, from: Data(try statement(delta: delta, asJSON: true).utf8))
  }
}
