import CarillonAPNs
import Crypto

extension APNsCredentials {
    /// A key that nobody knows, so that the library's rules and the network can be asked without anybody's.
    static func ofNobody() throws -> APNsCredentials {
        .token(
            try APNsTokenKey(
                pem: P256.Signing.PrivateKey().pemRepresentation, keyID: "0000000000", teamID: "0000000000"))
    }
}
