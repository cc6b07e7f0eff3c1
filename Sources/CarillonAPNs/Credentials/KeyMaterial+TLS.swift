package import CarillonBasics
package import NIOSSL

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension KeyMaterial {
    /// Reads a file of keys or certificates.
    ///
    /// - Throws: The error of the file system.
    package init(path: String) throws {
        self.init(bytes: Array(try Data(contentsOf: URL(filePath: path))))
    }

    /// Returns all certificates in their order; there is at least one.
    package func tlsCertificates() throws(KeyFault) -> [NIOSSLCertificate] {
        var found: [NIOSSLCertificate] = []
        for der in try certificates() {
            do {
                found.append(try NIOSSLCertificate(bytes: der, format: .der))
            } catch {
                throw .undecodable(label: "CERTIFICATE")
            }
        }
        return found
    }
}
