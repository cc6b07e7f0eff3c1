import Crypto

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The secret that signs calls to a backend (Standard Webhooks, symmetric): 32 random bytes. The text is `whsec_` and their
/// base64.
package struct SigningSecret: Equatable, Sendable {
    package static let byteCount = 32

    package let bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }

    package var text: String { "whsec_" + Data(bytes).base64EncodedString() }

    /// Returns `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.
    package func signature(id: String, seconds: Int64, body: some Sequence<UInt8>) -> String {
        let code = HMAC<SHA256>.authenticationCode(
            for: Array("\(id).\(seconds).".utf8) + body, using: SymmetricKey(data: bytes))
        return "v1," + Data(code).base64EncodedString()
    }
}
