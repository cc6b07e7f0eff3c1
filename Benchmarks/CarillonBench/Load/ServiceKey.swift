import Foundation

/// The key of a simulated device for sealed messages. The server checks only its form, so the key and the sealed content are
/// random.
struct ServiceKey: Sendable {
    let id: String
    /// The key bundle as JSON, which is part of an offer and of every sealed message.
    let bundle: String

    /// The length of 500 bytes after padding and sealing.
    private static let bodyBytes = 528
    private static let lifetimeMilliseconds: Int64 = 7 * 86_400_000

    init(_ number: Int) {
        let digits = String(number, radix: 16)
        let id = String(repeating: "0", count: 16 - digits.count) + digits
        let until = Int64(Date.now.timeIntervalSince1970 * 1000) + Self.lifetimeMilliseconds
        self.id = id
        bundle =
            #"{"identity":"\#(Self.chance(32))","id":"\#(id)","key":"\#(Self.chance(32))","until":\#(until),"#
            + #""signature":"\#(Self.chance(64))"}"#
    }

    /// Returns a sealed message of this device for another device: members of a JSON object.
    func sealed(to other: ServiceKey) -> String {
        #""suite":"Curve25519_SHA256_ChachaPoly","keyID":"\#(other.id)","sender":\#(bundle),"#
            + #""enc":"\#(Self.chance(32))","body":"\#(Self.chance(Self.bodyBytes))","files":0,"fileBytes":0"#
    }

    private static func chance(_ count: Int) -> String { Data.chance(count).base64URL }
}

extension Data {
    static func chance(_ count: Int) -> Data { Data((0..<count).map { _ in UInt8.random(in: .min ... .max) }) }

    /// RFC 4648 section 5, without padding.
    var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    var hexadecimal: String { map { String(format: "%02x", $0) }.joined() }
}
