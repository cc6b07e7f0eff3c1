import CarillonAPNs
import Crypto

extension APNsCredentials {
    /// Returns a random signing key, with which the library's rules and the network can be checked without real push credentials.
    static func ofNobody() throws -> APNsCredentials {
        .token(
            try APNsTokenKey(
                pem: P256.Signing.PrivateKey().pemRepresentation, keyID: "0000000000", teamID: "0000000000"))
    }
}
