import CarillonBasics
import CarillonWire
import Crypto

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A parameter that the device reports, and that audiences use. The app's operator declares the names and their types.
public enum UpdateParameter: Hashable, Sendable {
    case text(String)
    case integer(Int)
    case number(Double)
    case flag(Bool)
    case moment(Date)
    case texts([String])
    /// A position in degrees. The server stores it with a precision of about one kilometre, for one day. Leave the parameter out
    /// if the user does not permit the app to use the location.
    case location(latitude: Double, longitude: Double)

    var json: JSONValue {
        switch self {
        case .text(let text): .string(text)
        case .integer(let number): .integer(number)
        case .number(let number): .number(number)
        case .flag(let flag): .bool(flag)
        case .moment(let date): .string(Timestamp3339.text(date.milliseconds))
        case .texts(let texts): .array(texts.map { .string($0) })
        case .location(let latitude, let longitude):
            .object([
                .init(name: "latitude", value: .number(Self.rounded(latitude))),
                .init(name: "longitude", value: .number(Self.rounded(longitude))),
            ])
        }
    }

    /// Rounds as the server does, so that a device that does not move reports no change.
    private static func rounded(_ degrees: Double) -> Double { (degrees * 100).rounded() / 100 }

    fileprivate var isLocation: Bool { if case .location = self { true } else { false } }
}

/// All parameters at one moment, with a revision that differs for other values.
struct ParameterSet: Equatable, Sendable {
    let revision: String
    let values: JSONValue

    /// - Parameter now: In milliseconds since 1970. A location is valid on the server for one day. It is reported again before it
    ///   expires.
    init(_ parameters: [String: UpdateParameter], at now: Int64) {
        values = .object(
            parameters.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: $0.value.json) })
        let time = parameters.values.contains(where: \.isLocation) ? "\(now / Self.locationMilliseconds)" : ""
        revision = Base64URL.encode(Array(SHA256.hash(data: values.bytes + Array(time.utf8)).prefix(12)))
    }

    private static let locationMilliseconds: Int64 = 43_200_000

    var json: JSONValue {
        .object([.init(name: "revision", value: .string(revision)), .init(name: "values", value: values)])
    }
}
