import CarillonBasics
import Crypto

/// The identifier of a message in a push: a hash of the message's identifier. The identifier itself permits reading and
/// withdrawing the message, so the server sends it only to the message's sender and device.
package enum MessageHash {
    /// Returns the hash, 22 characters.
    ///
    /// - Parameter id: The identifier, in the form of `version` in a notification.
    package static func text(of id: String) -> String {
        Base64URL.encode(Array(SHA256.hash(data: Array(id.utf8))).prefix(16))
    }
}
