import ArgumentParser
import Foundation
import NIOSSL

/// Which certificate authorities a command trusts.
struct AuthorityOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A PEM file of certificate authorities to trust in place of the system's; or CARILLON_CA in the environment.",
            valueName: "file"),
        completion: .file())
    var ca: String?

    /// The path of the file; nil for the authorities of the system.
    var file: String? { ca ?? Environment["CARILLON_CA"] }

    static func certificates(in file: String) throws -> [NIOSSLCertificate] {
        let text = try InputFile.bytes(file)
        do {
            let certificates = try NIOSSLCertificate.fromPEMBytes(Array(text))
            if !certificates.isEmpty { return certificates }
        } catch is NIOSSLError {
            // The sentence is the same as for a file without a certificate.
        }
        throw CommandFault(ExitStatus.noInput, "the file \(file) of --ca has no readable certificate in PEM form")
    }
}
