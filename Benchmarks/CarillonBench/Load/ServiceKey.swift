import Foundation

/// What a device of the load seals with. The server looks at its shape only, so it is made of chance, and what is sealed as well.
struct ServiceKey: Sendable {
    let id: String
    /// JSON, as it goes with an offer and with whatever is sealed.
    let bundle: String

    /// What 500 bytes become when they are padded and sealed.
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

    /// What this device has inside for another: members of a JSON object.
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
