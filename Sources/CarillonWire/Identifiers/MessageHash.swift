import CarillonBasics
import Crypto

/// What a push calls a message by: a hash of its identifier, which itself is the right to ask for the message and to take it
/// back, and never leaves the server but to its sender and its device.
package enum MessageHash {
    /// 22 characters.
    ///
    /// - Parameter id: The identifier as it stands in `version` of a notification.
    package static func text(of id: String) -> String {
        Base64URL.encode(Array(SHA256.hash(data: Array(id.utf8))).prefix(16))
    }
}
