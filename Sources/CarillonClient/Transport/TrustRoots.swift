import NIOSSL

/// Which certificates are believed.
enum TrustRoots {
    /// What connections begin TLS with.
    static func context(path: String?) throws(PushError) -> NIOSSLContext {
        let configuration = try configuration(path: path)
        do {
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw PushError(.configurationInvalid, "trustRootsPath: the certificates cannot be used.", cause: error)
        }
    }

    /// The settings of TLS for both HTTP and WebSocket: the peer's name is always verified.
    static func configuration(path: String?) throws(PushError) -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        guard let path else { return configuration }
        do {
            let certificates = try NIOSSLCertificate.fromPEMFile(path)
            guard !certificates.isEmpty else {
                throw PushError(.configurationInvalid, "trustRootsPath: \(path) holds no certificate.")
            }
            configuration.trustRoots = .certificates(certificates)
            return configuration
        } catch let error as PushError {
            throw error
        } catch {
            throw PushError(
                .configurationInvalid, "trustRootsPath: \(path) is not a readable PEM file of certificates.",
                cause: error)
        }
    }
}
