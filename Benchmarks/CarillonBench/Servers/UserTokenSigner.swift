import Crypto
import Foundation

/// Signs user tokens (RFC 7519), as the backend of an app does.
struct UserTokenSigner: Sendable {
    private let key = Curve25519.Signing.PrivateKey()

    /// The key set with which the tokens are verified (RFC 7517).
    var keySet: String {
        #"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"\#(key.publicKey.rawRepresentation.base64URL)"}]}"#
    }

    /// Returns a token that is valid in several apps, for a day.
    func token(of user: String, for apps: [String]) throws -> String {
        let audience = apps.map { "\"\($0)\"" }.joined(separator: ",")
        let expiry = Int(Date.now.timeIntervalSince1970) + 86_400
        let parts = [#"{"alg":"EdDSA"}"#, #"{"sub":"\#(user)","aud":[\#(audience)],"exp":\#(expiry)}"#]
        let message = parts.map { Data($0.utf8).base64URL }.joined(separator: ".")
        let signature = try key.signature(for: Data(message.utf8))
        return "\(message).\(signature.base64URL)"
    }
}
