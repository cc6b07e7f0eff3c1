import CarillonBasics
import CarillonServer
import Foundation

/// Reads whole input files, which can be pipes.
enum InputFile {
    /// The largest file that is read, in bytes.
    static let limit = 16 << 20

    /// Reads a file. "-" is standard input.
    static func bytes(_ path: String) throws -> Data { try bytes(path) { _ in false } }

    /// Reads a file that only the user of the process must be able to read.
    static func secret(_ path: String) throws -> Data { try bytes(path) { _ in true } }

    /// Reads a file that can contain a secret or only a certificate. PEM without a private key, and a certificate in DER, are not
    /// secret.
    static func secretOrCertificate(_ path: String) throws -> Data {
        try bytes(path) { content in
            let material = KeyMaterial(bytes: Array(content))
            if material.isCertificateFile { return false }
            return material.text == nil || material.items.isEmpty || material.hasPrivateKey
        }
    }

    /// Reads a key or a certificate that only the user of the process must be able to read.
    static func secretMaterial(_ path: String) throws -> KeyMaterial { KeyMaterial(bytes: Array(try secret(path))) }

    static func secretText(_ path: String) throws -> String { String(decoding: try secret(path), as: UTF8.self) }

    private static func bytes(_ path: String, isSecret: (Data) -> Bool) throws -> Data {
        do {
            if path == "-" { return try read(.standardInput, "standard input") }
            let handle = try FileHandle(forReadingFrom: URL(filePath: path))
            defer { try? handle.close() }
            let content = try read(handle, "the file \(path)")
            if isSecret(content), let reason = SecretFile.fault(of: handle.fileDescriptor, at: path) {
                throw CommandFault(ExitStatus.noInput, "the file \(path) \(reason)")
            }
            return content
        } catch let fault as CommandFault {
            throw fault
        } catch {
            throw CommandFault(ExitStatus.noInput, "\(PathPhrase.subject(path, "the file ")) cannot be read")
        }
    }

    /// Reads until the end, because a pipe returns its data in parts.
    private static func read(_ handle: FileHandle, _ name: String) throws -> Data {
        var data = Data()
        while let part = try handle.read(upToCount: 65_536), !part.isEmpty {
            data.append(part)
            guard data.count <= limit else {
                throw CommandFault(ExitStatus.noInput, "\(name) is larger than \(limit >> 20) MiB")
            }
        }
        return data
    }
}
