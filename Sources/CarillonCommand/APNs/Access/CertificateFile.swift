import ArgumentParser
import CarillonBasics
import Foundation

/// The file of a certificate, and the file of its private key if it is separate.
enum CertificateFile {
    case archive([UInt8])
    /// The certificates, and the private keys that can belong to the first certificate, without the other contents of the files.
    case pem(certificate: String, privateKey: String)

    static let withoutKey =
        "is a certificate without a private key; export the certificate and its key together, or name the key with --cert-key"

    /// - Parameters:
    ///   - file: A PKCS #12 file, or a certificate in PEM or DER form.
    ///   - keyFile: The file of the private key, in PEM or DER form; nil: the key is in the first file.
    ///   - hasPassphrase: Whether an encrypted key can be read.
    /// - Throws: ``CommandFault`` if a file cannot be read, or there is no private key.
    init(_ file: String, keyFile: String?, hasPassphrase: Bool) throws {
        let bytes = Array(try InputFile.secretOrCertificate(file))
        let material = KeyMaterial(bytes: bytes)
        guard material.isCertificateFile || material.text != nil && !material.items.isEmpty else {
            self = try Self.archive(bytes, material, at: file, keyFile: keyFile)
            return
        }
        let keyMaterial = try keyFile.map { KeyMaterial(bytes: Array(try InputFile.secret($0))) } ?? material
        guard keyFile != nil || keyMaterial.hasPrivateKey || !material.hasCertificate else {
            throw CommandFault(ExitStatus.notAllowed, "\(file) \(Self.withoutKey)")
        }
        let keys: [KeyMaterial.Item]
        do {
            keys = try keyMaterial.privateKeys()
            guard hasPassphrase || keys.contains(where: { $0.content != .encryptedKey }) else {
                throw CommandFault(
                    ExitStatus.notAllowed,
                    "the private key in \(keyFile ?? file) is encrypted; name a file with its passphrase with --passphrase-file FILE"
                )
            }
        } catch let fault as KeyFault {
            let need = keyFile == nil ? "a certificate and its private key in PEM form" : "a private key in PEM or DER form"
            throw CommandFault(ExitStatus.notAllowed, fault.words(keyFile ?? file, need: need))
        }
        do {
            let chain = try material.certificates().map { PEMBlock(label: "CERTIFICATE", bytes: $0).text }
            self = .pem(certificate: chain.joined(), privateKey: keys.map(\.text).joined())
        } catch {
            let need = keyFile == nil ? "a certificate and its private key in PEM form" : "a certificate in PEM or DER form"
            throw CommandFault(ExitStatus.notAllowed, error.words(file, need: need))
        }
    }

    private static func archive(
        _ bytes: [UInt8], _ material: KeyMaterial, at file: String, keyFile: String?
    ) throws -> CertificateFile {
        let fault: KeyFault? =
            if let item = material.items.first, let damage = item.block.damage {
                .damaged(label: item.block.label, damage)
            } else if let item = material.items.first, item.content != .archive {
                .found(item.content.phrase ?? "a file of another kind")
            } else if bytes.first != 0x30 {
                // A PKCS #12 file is a sequence in DER or BER. The parsed items do not include it.
                bytes.isEmpty ? .empty : .noBlock
            } else {
                nil
            }
        if let fault {
            throw CommandFault(
                ExitStatus.notAllowed, fault.words(file, need: "a .p12 file, or a certificate in PEM or DER form"))
        }
        guard keyFile == nil else {
            throw CommandFault(
                .validationFailure, "\(file) is a .p12 file, which has its own private key; leave out --cert-key")
        }
        return .archive(bytes)
    }
}
