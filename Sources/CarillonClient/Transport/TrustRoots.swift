import CarillonBasics
import NIOSSL

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The trusted certificates.
enum TrustRoots {
    /// Returns the TLS context of connections.
    static func context(path: String?) throws(PushError) -> NIOSSLContext {
        let configuration = try configuration(path: path)
        do {
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw PushError(.configurationInvalid, "trustRootsPath: the certificates cannot be used.", cause: error)
        }
    }

    /// Returns the TLS settings for both HTTP and WebSocket: the peer's name is always verified.
    static func configuration(path: String?) throws(PushError) -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let path { configuration.trustRoots = .certificates(try certificates(in: path)) }
        return configuration
    }

    /// Returns the certificates of a file in PEM form, or the one of a file in DER, at least one.
    static func certificates(in path: String) throws(PushError) -> [NIOSSLCertificate] {
        let file: KeyMaterial
        do {
            file = KeyMaterial(bytes: Array(try Data(contentsOf: URL(filePath: path))))
        } catch {
            let cause = PathPhrase.isShown(path) ? error : nil
            throw PushError(
                .configurationInvalid, "trustRootsPath: \(PathPhrase.subject(path)) cannot be read.", cause: cause)
        }
        let fault: KeyFault
        do {
            return try file.certificates().map { try NIOSSLCertificate(bytes: $0, format: .der) }
        } catch let known as KeyFault {
            fault = known
        } catch {
            fault = .undecodable(label: "CERTIFICATE")
        }
        throw PushError(
            .configurationInvalid, "trustRootsPath: " + fault.sentence(path, need: "certificates in PEM form"), cause: fault)
    }
}
