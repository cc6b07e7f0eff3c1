import CarillonBasics
import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension Request {
    /// The secret of `Authorization: Bearer …`.
    var bearer: String? {
        guard let value = headers[.authorization] else { return nil }
        let parts = value.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return String(parts[1])
    }

    func idempotencyKey() throws(Refusal) -> String? {
        guard let key = headers[.idempotencyKey] else { return nil }
        return try PublishHeaders.checked(idempotencyKey: key)
    }

    /// Returns the whole body. Reading stops at the limit.
    func bytes(upTo limit: Int) async throws -> [UInt8] {
        let tooLarge = Refusal(.bodyTooLarge, "The body may have \(limit) bytes.")
        if let length = headers[.contentLength].flatMap(Int.init), length > limit { throw tooLarge }
        let incomplete = Refusal(.bodyIncomplete, "The body ended before it was whole; nothing was done.")
        let bytes: [UInt8]
        do {
            bytes = Array(try await body.collect(upTo: limit).readableBytesView)
        } catch is NIOTooManyBytesError {
            throw tooLarge
        } catch {
            throw incomplete
        }
        if let length = headers[.contentLength].flatMap(Int.init), length != bytes.count { throw incomplete }
        return bytes
    }

    /// Returns the body as a type of the API. Unknown members are rejected.
    func decode<Body: StrictBody>(_ type: Body.Type) async throws -> Body {
        try StrictJSON.decode(type, from: Data(try await bytes(upTo: Limits.apiBodyBytes)))
    }

    /// Returns the body as a type of the API; nil if the body is empty.
    func decodeIfPresent<Body: StrictBody>(_ type: Body.Type) async throws -> Body? {
        let bytes = try await bytes(upTo: Limits.apiBodyBytes)
        return bytes.isEmpty ? nil : try StrictJSON.decode(type, from: Data(bytes))
    }

    /// Returns the body as an object without unknown members, for routes that distinguish null from absent.
    func object(of names: Set<String>, mayBeMissing: Bool = false) async throws -> JSONValue {
        let bytes = try await bytes(upTo: Limits.apiBodyBytes)
        if mayBeMissing, bytes.isEmpty { return .object([]) }
        return try StrictJSON.object(bytes, known: names)
    }

    /// Returns a query parameter that must be a whole number within bounds.
    func number(_ name: String, in range: ClosedRange<Int>, default value: Int) throws -> Int {
        guard let text = uri.queryParameters[Substring(name)] else { return value }
        guard let number = Int(text), range.contains(number) else {
            throw Refusal(
                .parameterInvalid, "\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }
}

extension HTTPField.Name {
    static let carillonServer = known(HeaderNames.server)
    static let cryptoKey = known("Crypto-Key")
    static let idempotencyKey = known("Idempotency-Key")
    static let gnpToken = known("X-Good-GNP-Token")
    static let gnpCode = known("X-Good-GNP-Code")

    static func known(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else { preconditionFailure("\(name) is the name of a header") }
        return name
    }
}
