import Crypto
import Foundation

extension APNsSimulator {
    /// A team's signing key for provider tokens, as in an Apple developer account.
    public struct SigningKey: Sendable {
        /// The key ID: ten characters; `kid` in the header of a token.
        public var id: String
        /// The team ID: ten characters; `iss` in the claims of a token.
        public var teamID: String
        /// The public key in PEM form. The simulated service uses only this key.
        public var publicKey: String
        /// The private key as the `.p8` file that a developer downloads; nil if the key was made elsewhere.
        public var privateKey: String?
        /// The environments for which the key is valid.
        public var environments: Set<Environment>
        /// The APNs topics of a topic-specific key; nil for a key of the whole team.
        public var topics: Set<String>?
        /// For a topic-specific key, the ID of the one other key that can be used on the same connection.
        public var relatedKeyID: String?

        /// Makes a new key pair.
        /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/identifierInvalid`` unless both identifiers have ten
        ///   characters.
        public init(
            id: String = "SIMULATED1", teamID: String = "SIMTEAM001",
            environments: Set<Environment> = [.sandbox, .production],
            topics: Set<String>? = nil, relatedKeyID: String? = nil
        ) throws(SimulatorError) {
            let key = P256.Signing.PrivateKey()
            try self.init(
                id: id, teamID: teamID, privateKey: key.pemRepresentation + "\n", environments: environments, topics: topics,
                relatedKeyID: relatedKeyID)
        }

        /// Reads an existing key: a `.p8` file, or the PEM of its public key, for instance from
        /// `openssl pkey -in AuthKey.p8 -pubout`. White space, the length of lines and text outside of the block do not
        /// matter.
        /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/keyInvalid`` if neither text is a P-256 key, and with
        ///   ``SimulatorError/Code/identifierInvalid`` unless both identifiers have ten characters.
        public init(
            id: String, teamID: String, privateKey: String? = nil, publicKey: String? = nil,
            environments: Set<Environment> = [.sandbox, .production], topics: Set<String>? = nil,
            relatedKeyID: String? = nil
        ) throws(SimulatorError) {
            try Self.checkLength(id, "key ID")
            try Self.checkLength(teamID, "team ID")
            if let privateKey {
                let key = try Self.readPrivateKey(privateKey, "The private key of \(id)")
                self.publicKey = key.publicKey.pemRepresentation
            } else if let publicKey {
                self.publicKey = try Self.readPublicKey(publicKey, "The public key of \(id)").pemRepresentation
            } else {
                throw SimulatorError(
                    .keyInvalid, "The key \(id) has neither a private key nor a public key; set one of them.")
            }
            self.id = id
            self.teamID = teamID
            self.privateKey = privateKey
            self.environments = environments
            self.topics = topics
            self.relatedKeyID = relatedKeyID
        }

        /// Makes a provider token, for clients that cannot sign one, and for tests of tokens that must be rejected.
        /// - Parameter issuedAt: the `iat` claim, in seconds since 1970.
        /// - Throws: ``SimulatorError`` with ``SimulatorError/Code/keyInvalid`` if there is no private key.
        public func makeProviderToken(issuedAt: Int64) throws(SimulatorError) -> String {
            guard let privateKey else {
                throw SimulatorError(.keyInvalid, "The key \(id) has no private key; only its public key is known.")
            }
            let key = try Self.readPrivateKey(privateKey, "The private key of \(id)")
            let header = ProviderToken.encoded(Data(#"{"alg":"ES256","kid":"\#(id)"}"#.utf8))
            let claims = ProviderToken.encoded(Data(#"{"iss":"\#(teamID)","iat":\#(issuedAt)}"#.utf8))
            do {
                let signature = try key.signature(for: Data("\(header).\(claims)".utf8))
                return "\(header).\(claims).\(ProviderToken.encoded(signature.rawRepresentation))"
            } catch {
                throw SimulatorError(.keyInvalid, "The key \(id) cannot sign.", cause: error)
            }
        }

        func isRelated(to other: SigningKey) -> Bool {
            if id == other.id { return true }
            guard teamID == other.teamID else { return false }
            if topics == nil, other.topics == nil { return true }
            return relatedKeyID == other.id || other.relatedKeyID == id
        }
    }
}

typealias SigningKey = APNsSimulator.SigningKey
