/// A recipient of pushes. A `String` is its own device token. A type of your own can also have an environment, and is
/// returned with its result.
///
/// ```swift
/// struct Install: APNsRecipient {
///     let user: Int
///     let deviceToken: String
///     let environment: APNsEnvironment?
/// }
/// ```
public protocol APNsRecipient: Sendable {
    /// The token as hexadecimal digits, of any length.
    var deviceToken: String { get }
    /// The environment that the token belongs to; nil for the client's default.
    var environment: APNsEnvironment? { get }
}

extension APNsRecipient {
    /// Nil, for the client's default.
    public var environment: APNsEnvironment? { nil }
}

extension String: APNsRecipient {
    /// The text itself.
    public var deviceToken: String { self }
}

/// A device token with its environment.
public struct APNsDeviceToken: APNsRecipient, Hashable {
    /// The token as hexadecimal digits.
    public let deviceToken: String
    /// The environment that the token belongs to; nil for the client's default.
    public let environment: APNsEnvironment?

    /// Makes a token from hexadecimal digits.
    public init(_ hexadecimal: String, in environment: APNsEnvironment? = nil) {
        deviceToken = hexadecimal
        self.environment = environment
    }

    /// Makes a token from bytes, as the app receives them.
    public init(bytes: some Sequence<UInt8>, in environment: APNsEnvironment? = nil) {
        let digits = Array("0123456789abcdef".utf8)
        deviceToken = String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
        self.environment = environment
    }
}

/// The path of a push to a device.
enum DevicePath {
    static func make(_ token: String) throws(APNsError) -> String {
        var token = token
        let isHexadecimal = token.withUTF8 { text in
            text.count > 0 && text.count.isMultiple(of: 2)
                && text.allSatisfy { byte in
                    byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 6
                }
        }
        guard isHexadecimal else {
            throw APNsError(
                .tokenInvalid,
                "A device token must be an even number of hexadecimal digits; this one has \(token.utf8.count) bytes"
                    + (token.utf8.count.isMultiple(of: 2) && !token.isEmpty
                        ? ", and some of them are not hexadecimal digits." : "."))
        }
        guard token.utf8.count <= 4096 else {
            throw APNsError(.tokenInvalid, "A device token of \(token.utf8.count) digits is too long for a request.")
        }
        return "/3/device/" + token
    }
}
