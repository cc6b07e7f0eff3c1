import CarillonAPNs
import CarillonBasics
import NIOSSL

/// A file of trusted certificates.
struct TrustedFile {
    /// The certificates in PEM, converted if the file is in DER.
    let pem: String
    let certificates: [NIOSSLCertificate]

    /// - Parameter option: The option or the setting that names the file.
    init(_ file: String, of option: String) throws {
        let material = KeyMaterial(bytes: Array(try InputFile.bytes(file)))
        do {
            certificates = try material.tlsCertificates()
        } catch {
            throw CommandFault(
                ExitStatus.noInput, error.words("the file \(file) of \(option)", need: "certificates in PEM form"))
        }
        pem = material.pem
    }
}

extension KeyFault {
    /// Returns the sentence in the form of the command line, without a full stop.
    func words(_ subject: String, need: String) -> String { String(sentence(subject, need: need).dropLast()) }
}
