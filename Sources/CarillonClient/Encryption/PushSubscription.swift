import CarillonBasics
import CarillonMessages
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The endpoint and keys with which a backend sends encrypted messages to a channel. Send it to the backend as ``json``, the form
/// that browsers use and every Web Push library accepts.
///
/// A program with this value can send to the channel, but cannot decrypt its messages. The server that carries the messages does
/// not have the keys.
public struct PushSubscription: Hashable, Sendable, Codable {
    /// The URL to which messages are posted.
    public var endpoint: String
    /// The keys with which messages are encrypted.
    public var keys: Keys

    /// The public half of a channel's keys (RFC 8291 section 2), in base64url without padding.
    public struct Keys: Hashable, Sendable, Codable {
        /// The channel's public key: an uncompressed point on P-256.
        public var p256dh: String
        /// The secret that the channel shares with its senders: 16 bytes.
        public var auth: String

        /// Makes a value from existing texts.
        public init(p256dh: String, auth: String) {
            self.p256dh = p256dh
            self.auth = auth
        }
    }

    /// Makes a value from existing texts.
    public init(endpoint: String, keys: Keys) {
        self.endpoint = endpoint
        self.keys = keys
    }

    init(_ keys: SubscriptionKeys, endpoint: ChannelEndpoint) {
        self.init(
            endpoint: endpoint.text,
            keys: Keys(p256dh: Base64URL.encode(keys.publicKey), auth: Base64URL.encode(keys.authSecret)))
    }

    /// `{"endpoint":"…","keys":{"auth":"…","p256dh":"…"}}`.
    public var json: String {
        let text = JSONWriter.object { json in
            json.member("endpoint", endpoint)
            json.member("keys") { json in
                json.member("auth", keys.auth)
                json.member("p256dh", keys.p256dh)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
